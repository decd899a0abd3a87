// Only in a saved page: unpacks the run that the page carries, starts the page with it, and answers what it
// would ask a server. Nothing is computed here; explorer/export/replay_page.py has computed it all.
const OLD =
  "This browser cannot unpack the run in this page; open it with a newer one " +
  "(Chrome 80, Firefox 113, Safari 16.4 or later).";

const unpacked = new Map();

// What one of the page's blobs holds; unpacked once.
function blob(name) {
  if (!unpacked.has(name)) unpacked.set(name, page.unpack(name).then(JSON.parse));
  return unpacked.get(name);
}

// One lane's part of a pull's answer: what comes after the cursor. `first` is what the page began with,
// `others` its other views.
function after(first, others, cursor) {
  const view = cursor.view === first.view ? first : others[cursor.view];
  const answer = {
    ...first,
    view: cursor.view,
    from: cursor.ops,
    ops: view.ops.slice(Math.max(0, cursor.ops)),
    rows_from: cursor.rows,
    rows: first.rows.slice(Math.max(0, cursor.rows)),
    head: view.head,
  };
  if (cursor.ops > 0) delete answer.head;
  return answer;
}

const answers = {
  async explorer_pull(request) {
    const { lanes } = await blob("rest"),
      first = (await blob("first")).example.answer.lanes;
    return {
      run: request.run,
      state: "done",
      lanes: lanes.map((others, i) => after(first[i], others, request.cursors[i])),
    };
  },
  async explorer_inspect(request) {
    const { nodes, cells } = await blob("rest");
    const answer = request.cell
      ? cells[request.lane][request.cell.join(",")]
      : nodes[request.lane][request.node];
    return answer || { error: "This mark is not a token of the trace; click on a token." };
  },
  async explorer_code({ lane, steps }) {
    const whole = (await blob("rest")).code[lane];
    return steps ? { ...whole, functions: [], places: [], steps: [] } : whole;
  },
  async explorer_depths(request) {
    return { depths: (await blob("rest")).depths[request.lane] };
  },
  async explorer_what_if(request) {
    return (await blob("rest")).knobs[request.lane];
  },
  async explorer_compare() {
    return (await blob("rest")).marks;
  },
  async explorer_save({ form, lane, views }) {
    // the forms that a saved page offers: trace and picture of a lane
    const name = "lane-" + (lane + 1) + ".";
    if (form === "picture") {
      const { error, ending, svg } = (await blob("pictures"))[lane][views[lane]];
      return error
        ? { error }
        : { name: name + ending, type: "image/svg+xml", data: page.toBase64(new TextEncoder().encode(svg)) };
    }
    const packed = await page.packed((await blob("run")).traces[lane]);
    return { name: name + "trace.json.gz", type: "application/gzip", data: page.toBase64(packed) };
  },
};

async function start() {
  if (!window.DecompressionStream) return document.getElementById("explorer").append(OLD);
  // A copy: the page changes what it begins with. A page of the site has a part of it in its scripts.
  page.boot({ ...page.common, ...JSON.parse(await page.unpack("first")) });
  page.app.models = { state: "saved", sentence: "" };
  page.app.status();
  page.draw();
  // Answers are text, as a server's are: what the page does with them must not change them here.
  const asText = ([name, ask]) => [name, async (request) => JSON.stringify(await ask(request))];
  page.connect(Object.fromEntries(Object.entries(answers).map(asText)));
}

start();
