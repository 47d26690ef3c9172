"use strict";

/* Redoc over this server's schema; its fonts are the system's. */
{
  const place = document.getElementById("redoc");
  const family = "system-ui, sans-serif";
  const NOT_OURS = "https://cdn.redoc.ly/";

  /* Redoc has no option against its makers' logo, which lies on their host: no other host is asked for anything.
     React sets the address twice, as an attribute and as a property. */
  const images = HTMLImageElement.prototype;
  const { get } = Object.getOwnPropertyDescriptor(images, "src");
  images.setAttribute = function (name, value) {
    if (name === "src" && String(value).startsWith(NOT_OURS)) this.hidden = true;
    else Element.prototype.setAttribute.call(this, name, value);
  };
  Object.defineProperty(images, "src", {
    get,
    set(value) {
      this.setAttribute("src", value);
    },
  });

  Redoc.init(
    place.dataset.schema,
    { theme: { typography: { fontFamily: family, headings: { fontFamily: family } } } },
    place,
  );
}
