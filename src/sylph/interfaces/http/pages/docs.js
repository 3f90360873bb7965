"use strict";

SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#api",
  deepLinking: true,
  docExpansion: "none",
  filter: true,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  validatorUrl: null,
  // The browser is logged in: its cookie goes along, and the header shows that the request is this page's.
  requestInterceptor: (request) => {
    request.headers["X-Sylph"] = "1";
    return request;
  },
});
