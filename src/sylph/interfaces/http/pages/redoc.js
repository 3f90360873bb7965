"use strict";

Redoc.init("/openapi.json", { hideDownloadButton: true, scrollYOffset: 40 }, document.getElementById("api"));
