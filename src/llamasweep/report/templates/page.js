(function () {
  "use strict";
  var root = document.documentElement;
  var stored = null;
  try { stored = localStorage.getItem("llamasweep-theme"); } catch (e) { stored = null; }
  if (stored === "dark" || stored === "light") { root.dataset.theme = stored; }

  function isDark() {
    if (root.dataset.theme) { return root.dataset.theme === "dark"; }
    return matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function theme() {
    var button = document.getElementById("theme");
    function name() { button.textContent = isDark() ? "Light page" : "Dark page"; }
    button.hidden = false;
    name();
    button.addEventListener("click", function () {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem("llamasweep-theme", root.dataset.theme); } catch (e) { stored = null; }
      name();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
  }

  function copies() {
    document.querySelectorAll("button.copy").forEach(function (button) {
      button.hidden = false;
      button.addEventListener("click", function () {
        var source = document.getElementById(button.dataset.copy);
        function done() {
          button.textContent = "Copied";
          setTimeout(function () { button.textContent = "Copy"; }, 1500);
        }
        function byHand() {
          var range = document.createRange();
          range.selectNodeContents(source);
          var selection = getSelection();
          selection.removeAllRanges();
          selection.addRange(range);
          button.textContent = document.execCommand("copy") ? "Copied" : "Press Ctrl-C";
        }
        if (navigator.clipboard) {
          navigator.clipboard.writeText(source.textContent).then(done, byHand);
        } else { byHand(); }
      });
    });
  }

  function value(cell) {
    if (cell.dataset.v === undefined) { return cell.textContent.toLowerCase(); }
    return cell.dataset.v === "" ? null : Number(cell.dataset.v);
  }

  function sort(table, index, header) {
    var up = header.getAttribute("aria-sort") !== "ascending";
    table.querySelectorAll("th[aria-sort]").forEach(function (th) { th.removeAttribute("aria-sort"); });
    header.setAttribute("aria-sort", up ? "ascending" : "descending");
    var body = table.tBodies[0];
    var rows = Array.prototype.map.call(body.rows, function (row) { return [value(row.cells[index]), row]; });
    rows.sort(function (a, b) {
      if (a[0] === null || b[0] === null) { return (a[0] === null) - (b[0] === null); }
      var order = typeof a[0] === "number" && typeof b[0] === "number"
        ? a[0] - b[0] : String(a[0]).localeCompare(String(b[0]), undefined, {numeric: true});
      return up ? order : -order;
    });
    rows.forEach(function (pair) { body.appendChild(pair[1]); });
  }

  function tables() {
    document.querySelectorAll("table.sortable").forEach(function (table) {
      Array.prototype.forEach.call(table.tHead.rows[0].cells, function (header, index) {
        var button = document.createElement("button");
        button.type = "button";
        while (header.firstChild) { button.appendChild(header.firstChild); }
        header.appendChild(button);
        button.addEventListener("click", function () { sort(table, index, header); });
      });
    });
  }

  function tips() {
    var tip = document.createElement("div");
    tip.id = "tip";
    tip.setAttribute("role", "tooltip");
    tip.hidden = true;
    document.body.appendChild(tip);
    document.addEventListener("mousemove", function (event) {
      var mark = event.target.closest ? event.target.closest("svg.track,.chart [aria-label][role='graphics-symbol']") : null;
      var text = mark && mark.getAttribute("aria-roledescription") !== "axis" ? mark.getAttribute("aria-label") : "";
      tip.hidden = !text;
      if (!text) { return; }
      tip.textContent = text;
      tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px";
      tip.style.top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8) + "px";
    });
  }

  function contents() {
    if (!window.IntersectionObserver) { return; }
    var links = {};
    document.querySelectorAll("nav a").forEach(function (a) { links[a.getAttribute("href").slice(1)] = a; });
    var seen = new IntersectionObserver(function (entries) {
      entries.forEach(function (entry) {
        if (links[entry.target.id]) { links[entry.target.id].classList.toggle("here", entry.isIntersecting); }
      });
    }, {rootMargin: "-20% 0px -70% 0px"});
    document.querySelectorAll("main > section").forEach(function (section) { seen.observe(section); });
  }

  document.addEventListener("DOMContentLoaded", function () { theme(); copies(); tables(); tips(); contents(); });
})();
