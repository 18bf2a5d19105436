// The one table from error kinds to HTTP statuses.
#pragma once
#include "core/error.h"
#include "net/http.h"

namespace muster::serve {

/// 400 invalid_argument and usage, 404 not_found, 413 too_large, 415 unsupported, 429 overloaded, 503 cancelled, 504 timeout, else 500.
int status_of(ErrorKind kind);

/// The JSON answer for an error.
net::HttpResponse answer_for(ErrorKind kind, std::string_view message);

}  // namespace muster::serve
