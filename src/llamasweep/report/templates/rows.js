(function () {
  "use strict";
  var data, lines, groups, figures, chosen = {}, hidden = {}, boxes = {}, columnStyle, selects = {}, count, note;

  function columnValue(name, index) {
    var column = data.columns[name];
    if (Array.isArray(column)) { return column[index]; }
    return column.each ? column.each[column.of_row[index]] : column.same;
  }

  function matches(index) {
    return data.filters.every(function (filter) {
      return !(filter.key in chosen) || filter.values[filter.of_row[index]] === chosen[filter.key];
    });
  }

  function matching() {
    var found = [];
    for (var index = 0; index < data.n_rows; index += 1) { if (matches(index)) { found.push(index); } }
    return found;
  }

  function show() {
    var open = {};
    var found = matching();
    found.forEach(function (index) { open["row-" + (index + 1)] = true; });
    Object.keys(lines).forEach(function (id) { lines[id].hidden = !open[id]; });
    var isAll = found.length === data.n_rows;
    groups.forEach(function (group) {
      var isOpen = group.rows.some(function (id) { return open[id]; });
      if (group.isMark) { group.element.classList.toggle("off", !isOpen); } else { group.element.hidden = !isOpen; }
    });
    showFigures(open, isAll);
    count.textContent = isAll ? "Filter" : "Filter: " + found.length + " of " + data.n_rows + " rows";
    note.textContent = isAll ? "" : found.length + " of " + data.n_rows + " rows match. Strips, charts and table show these; sentences and titles speak of all.";
    Object.keys(selects).forEach(function (key) { selects[key].value = key in chosen ? "=" + chosen[key] : ""; });
  }

  function caption(parent) {
    var line = document.createElement("p");
    line.className = "caption matched";
    line.hidden = true;
    parent.appendChild(line);
    return line;
  }

  function showFigures(open, isAll) {
    var sections = new Map();
    figures.forEach(function (figure) {
      var n = figure.rows.filter(function (id) { return open[id]; }).length;
      var section = sections.get(figure.section) || {n: 0, hidden: 0, note: figure.sectionNote};
      figure.element.hidden = n === 0;
      figure.note.hidden = isAll;
      figure.note.textContent = "Filter: " + n + " of " + figure.rows.length + " rows shown, the others dimmed. The title speaks of all.";
      section.n += 1;
      section.hidden += n === 0;
      sections.set(figure.section, section);
    });
    sections.forEach(function (section) {
      section.note.hidden = section.hidden === 0;
      section.note.textContent = section.hidden + " of " + section.n + (section.n === 1 ? " chart" : " charts") + " hidden: nothing there matches the filter.";
    });
  }

  function gather() {
    groups = Array.prototype.map.call(document.querySelectorAll("[data-rows]"), function (element) {
      return {element: element, rows: element.dataset.rows.split(" "), isMark: element instanceof SVGElement};
    });
    figures = [];
    document.querySelectorAll("figure.chart").forEach(function (element) {
      var rows = new Set();
      element.querySelectorAll("[data-rows]").forEach(function (mark) {
        mark.dataset.rows.split(" ").forEach(function (id) { rows.add(id); });
      });
      if (!rows.size) { return; }
      var section = element.closest("section");
      var before = figures.filter(function (figure) { return figure.section === section; })[0];
      figures.push({element: element, rows: Array.from(rows), note: caption(element), section: section,
        sectionNote: before ? before.sectionNote : caption(section)});
    });
  }

  function showColumns() {
    var rules = Object.keys(boxes).map(function (title) {
      boxes[title].checked = !(title in hidden);
      return title in hidden ? "#rows tr>:nth-child(" + boxes[title].value + "){display:none}" : "";
    });
    columnStyle.textContent = rules.join("");
    var n = Object.keys(hidden).length;
    document.getElementById("columns").firstChild.textContent = n ? "Columns: " + n + " hidden" : "Columns";
  }

  function split(hash) {
    var at = hash.indexOf("?");
    return at < 0 ? [hash.slice(1), null] : [hash.slice(1, at), hash.slice(at + 1)];
  }

  function write() {
    var query = Object.keys(chosen).map(function (key) { return key + "=" + encodeURIComponent(chosen[key]); }).join("&");
    var away = Object.keys(hidden).map(encodeURIComponent).join(",");
    if (away) { query += (query ? "&" : "") + "hide=" + away; }
    var hash = "#" + split(location.hash)[0] + (query ? "?" + query : "");
    if (hash !== (location.hash || "#")) { history.replaceState(null, "", hash); }
  }

  function read(query) {
    chosen = {};
    hidden = {};
    query.split("&").forEach(function (pair) {
      var at = pair.indexOf("=");
      var value;
      if (pair.slice(0, at) === "hide") { hide(pair.slice(at + 1)); return; }
      try { value = decodeURIComponent(pair.slice(at + 1)); } catch (e) { return; }
      data.filters.forEach(function (filter) {
        if (filter.key === pair.slice(0, at) && filter.values.indexOf(value) >= 0) { chosen[filter.key] = value; }
      });
    });
  }

  function hide(list) {
    list.split(",").forEach(function (word) {
      var title;
      try { title = decodeURIComponent(word); } catch (e) { return; }
      if (Object.prototype.hasOwnProperty.call(boxes, title)) { hidden[title] = true; }
    });
  }

  function arrive(isFirst) {
    var parts = split(location.hash);
    if (parts[1] !== null) { read(parts[1]); }
    if (lines[parts[0]] && !matches(Number(parts[0].slice(4)) - 1)) { chosen = {}; }
    show();
    showColumns();
    write();
    var target = document.getElementById(parts[0]);
    var folded = target && target.closest("details:not([open])");
    if (folded) { folded.open = true; }
    if (target && (parts[1] !== null || !isFirst)) { target.scrollIntoView(); }
  }

  function choices() {
    var box = document.getElementById("choices");
    data.filters.forEach(function (filter) {
      var label = document.createElement("label");
      var select = document.createElement("select");
      label.textContent = filter.title;
      select.appendChild(new Option("all", ""));
      filter.values.forEach(function (value) { select.appendChild(new Option(value, "=" + value)); });
      select.addEventListener("change", function () {
        if (select.value === "") { delete chosen[filter.key]; } else { chosen[filter.key] = select.value.slice(1); }
        show();
        write();
      });
      label.appendChild(select);
      box.appendChild(label);
      selects[filter.key] = select;
    });
    document.getElementById("clear").addEventListener("click", function () { chosen = {}; show(); write(); });
  }

  function columns() {
    var place = document.getElementById("column-choices");
    columnStyle = document.createElement("style");
    document.head.appendChild(columnStyle);
    Array.prototype.forEach.call(document.querySelectorAll("#rows thead th"), function (th, index) {
      if (!index) { return; }
      var label = document.createElement("label");
      var box = document.createElement("input");
      var title = th.textContent;
      box.type = "checkbox";
      box.value = String(index + 1);
      box.addEventListener("change", function () {
        if (box.checked) { delete hidden[title]; } else { hidden[title] = true; }
        showColumns();
        write();
      });
      label.appendChild(box);
      label.appendChild(document.createTextNode(title));
      place.appendChild(label);
      boxes[title] = box;
    });
    document.getElementById("columns").hidden = false;
  }

  function field(value) {
    if (value === null) { return ""; }
    var text = String(value);
    // A table program would run a text that begins like a formula.
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) { text = "'" + text; }
    return /[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
  }

  function csv() {
    var names = Object.keys(data.columns);
    var rows = matching().map(function (index) {
      return names.map(function (name) { return field(columnValue(name, index)); }).join(",");
    });
    return [names.join(",")].concat(rows).join("\n") + "\n";
  }

  function json() {
    var names = Object.keys(data.columns);
    return JSON.stringify(matching().map(function (index) {
      var row = {};
      names.forEach(function (name) { row[name] = columnValue(name, index); });
      return row;
    }), null, 1) + "\n";
  }

  function markdown() {
    var all = document.getElementById("markdown").textContent.split("\n");
    var line = 2;
    var kept = all.slice(0, 2);
    for (var index = 0; index < data.n_rows; index += 1) {
      if (columnValue("status", index) === "ok" && columnValue("median_tps", index) !== null) {
        if (matches(index)) { kept.push(all[line]); }
        line += 1;
      }
    }
    return kept.concat(all.slice(line)).join("\n") + "\n";
  }

  function download(text, type, ending) {
    var link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], {type: type}));
    link.download = data.name.replace(/[^A-Za-z0-9_-]+/g, "-") + ending;
    document.body.appendChild(link);
    link.click();
    link.remove();
    setTimeout(function () { URL.revokeObjectURL(link.href); }, 10000);
  }

  function copyText(text, button) {
    var title = button.textContent;
    function done(word) {
      button.textContent = word;
      setTimeout(function () { button.textContent = title; }, 1500);
    }
    function byHand() {
      var area = document.createElement("textarea");
      area.value = text;
      document.body.appendChild(area);
      area.select();
      done(document.execCommand("copy") ? "Copied" : "Open the text below");
      area.remove();
    }
    if (navigator.clipboard) { navigator.clipboard.writeText(text).then(function () { done("Copied"); }, byHand); } else { byHand(); }
  }

  function downloads() {
    document.getElementById("downloads").hidden = false;
    document.getElementById("csv").addEventListener("click", function () { download(csv(), "text/csv", ".csv"); });
    document.getElementById("json").addEventListener("click", function () { download(json(), "application/json", ".json"); });
    document.getElementById("copy-markdown").addEventListener("click", function () { copyText(markdown(), this); });
  }

  document.addEventListener("DOMContentLoaded", function () {
    data = JSON.parse(document.getElementById("row-data").textContent);
    if (!data.n_rows) { return; }
    lines = {};
    Array.prototype.forEach.call(document.querySelectorAll("#rows tbody tr"), function (tr) { lines[tr.id] = tr; });
    gather();
    count = document.getElementById("count");
    note = document.getElementById("filter-note");
    downloads();
    document.getElementById("filters").hidden = !data.filters.length;
    choices();
    columns();
    addEventListener("hashchange", function () { arrive(false); });
    arrive(true);
  });
})();
