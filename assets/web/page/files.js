// Files: how the page hands one to the person and how it encodes bytes and texts for a request.
const SLICE = 0x8000,
  SCALE = 2; // arguments that one call takes; pixels of a PNG for one of its picture

// Bytes as base64 text, and back.
page.toBase64 = function (bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += SLICE) text += String.fromCharCode(...bytes.subarray(i, i + SLICE));
  return btoa(text);
};
page.fromBase64 = function (text) {
  const letters = atob(text),
    bytes = new Uint8Array(letters.length);
  // A function for each letter takes ten times as long.
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
};

// Bytes through a CompressionStream or DecompressionStream.
page.through = async (stream, bytes) =>
  new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());

// What becomes JSON as the bytes of a file that Traces opens again.
page.packed = (value) =>
  page.through(new CompressionStream("gzip"), new TextEncoder().encode(JSON.stringify(value)));

// The browser saves `what`, a Blob or the bytes of a packed file, under this name.
page.download = function (name, what) {
  const address = URL.createObjectURL(
    what instanceof Blob ? what : new Blob([what], { type: "application/gzip" }),
  );
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
};

// An SVG as PNG with twice its pixels.
async function raster(svg) {
  const image = new Image();
  image.src = URL.createObjectURL(svg);
  await image.decode();
  const canvas = new OffscreenCanvas(image.width * SCALE, image.height * SCALE);
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return canvas.convertToBlob();
}

// Whether the text is in the clipboard now: a browser may refuse, and has none for a page that is not secure.
page.copied = async (text) =>
  (await navigator.clipboard?.writeText(text).then(
    () => true,
    () => false,
  )) ?? false;

// What the lanes of the run show, null for those that were removed.
page.viewsOf = ({ run, lanes }) =>
  Array.from(
    { length: run.count },
    (_, index) => lanes.find((lane) => lane.runIndex === index)?.view ?? null,
  );

// What the server makes of the run or of one lane of it; `more`: what else is asked for, such as a width.
page.fileOf = (app, form, lane, more) =>
  page.call("explorer_save", {
    run: app.run.id,
    form,
    views: page.viewsOf(app),
    look: app.theme,
    ...(lane ? { lane: lane.runIndex, step: lane.shown } : {}),
    ...more,
  });

// Saves a file that the server makes, a picture as SVG or PNG; answers a sentence if that fails, else null.
page.save = async function (app, form, lane, asPng, more) {
  if (!app.run) return "There is no run yet; press Run first.";
  const file = await page.fileOf(app, form, lane, more);
  if (file.error && file.unheard && app.rescue.kept && (form === "run" || form === "trace")) {
    await app.rescue.save(lane ? lane.runIndex : undefined); // the page has what it has been told
    return null;
  }
  if (file.error) return file.error;
  const made = new Blob([page.fromBase64(file.data)], { type: file.type });
  page.download(asPng ? file.name.replace(/svg$/, "png") : file.name, asPng ? await raster(made) : made);
  return null;
};
