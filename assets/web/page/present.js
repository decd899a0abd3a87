// One lane alone on the whole screen, in type that a room can read. The keys are those of the page, and those of a clicker.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";
  const CLICKER = { PageDown: 1, PageUp: -1 };

  // Shows the lane; a sentence if this browser does not let it.
  page.present = async function (lane) {
    try {
      await lane.element.requestFullscreen();
    } catch {
      return "This browser does not let the page fill the screen; press F11 and remove the other lanes with ×.";
    }
    lane.app.phoneLane = lane.app.lanes.indexOf(lane); // the keys are for this lane
    lane.element.tabIndex = -1;
    lane.element.focus();
    return null;
  };

  page.addPart((app) => {
    document.addEventListener("keydown", (event) => {
      if (!(event.key in CLICKER) || !app.lanes.some((lane) => lane.element === document.fullscreenElement)) return;
      event.preventDefault();
      app.playback.seek(app.playback.position + CLICKER[event.key], true);
    });
  });
})(window.ExplorerPage);
