"use strict";
(() => {
  const menu = document.getElementById("class-menu");
  const parts = [...document.querySelectorAll(".class-part")];
  if (!menu || parts.length === 0) return;
  const show = (id) => {
    parts.forEach((part) => { part.hidden = part.id !== id; });
    menu.value = id;
  };
  document.getElementById("class-choice").hidden = false;
  menu.addEventListener("change", () => show(menu.value));
  const follow = () => {
    const id = location.hash.slice(1);
    if (!parts.some((part) => part.id === id)) return false;
    show(id);
    document.getElementById(id).scrollIntoView();
    return true;
  };
  window.addEventListener("hashchange", follow);
  if (!follow()) show(`class-${menu.dataset.opening}`);
})();
