"use strict";

/* Swagger UI over this server's schema. A session's CSRF token goes with what it sends. */
{
  const place = document.getElementById("swagger");
  const cookie = (name) => document.cookie.split("; ").find((part) => part.startsWith(`${name}=`));
  SwaggerUIBundle({
    url: place.dataset.schema,
    domNode: place,
    deepLinking: true,
    validatorUrl: null,
    requestInterceptor: (request) => {
      const token = cookie("csrftoken");
      if (token) request.headers["X-CSRFToken"] = token.slice("csrftoken=".length);
      return request;
    },
  });
}
