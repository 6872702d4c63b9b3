// Before anything is painted: the theme that was chosen last, if any.
(() => {
  let chosen = null;
  try { chosen = localStorage.getItem("frazil-theme"); } catch { /* a browser that keeps nothing */ }
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
})();
