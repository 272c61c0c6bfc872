document.addEventListener("DOMContentLoaded", function () {
  var wanted = document.getElementById("history-filter");
  if (!wanted) return;
  wanted.hidden = false;
  var box = wanted.querySelector("input");
  var told = wanted.querySelector("output");
  var all = Array.prototype.slice.call(document.querySelectorAll("[data-words]"));
  function filter() {
    var words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    var n = 0;
    all.forEach(function (one) {
      var fits = words.every(function (word) { return one.dataset.words.indexOf(word) >= 0; });
      one.hidden = !fits;
      n += fits ? 1 : 0;
    });
    told.textContent = n + " of " + all.length;
  }
  box.addEventListener("input", filter);
  filter();
  document.getElementById("history").addEventListener("click", function (event) {
    var mark = event.target.closest ? event.target.closest("svg [data-rows]") : null;
    if (mark) { show(document.getElementById(mark.dataset.rows)); }
  });
  function show(row) {
    if (!row) return;
    document.querySelectorAll("tr.shown").forEach(function (one) { one.classList.remove("shown"); });
    row.closest("details").open = true;
    row.classList.add("shown");
    row.scrollIntoView({block: "nearest"});
    var link = row.querySelector("a");
    if (link) { link.focus({preventScroll: true}); }
  }
});
