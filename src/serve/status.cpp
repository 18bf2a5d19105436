#include "serve/status.h"

namespace muster::serve {

int status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
    case ErrorKind::invalid_argument: return 400;
    case ErrorKind::not_found: return 404;
    case ErrorKind::too_large: return 413;
    case ErrorKind::unsupported: return 415;
    case ErrorKind::overloaded: return 429;
    case ErrorKind::cancelled: return 503;
    case ErrorKind::timeout: return 504;
    case ErrorKind::io:
    case ErrorKind::corrupt:
    case ErrorKind::internal: return 500;
  }
  return 500;
}

net::HttpResponse answer_for(ErrorKind kind, std::string_view message) { return net::error_response(status_of(kind), message); }

}  // namespace muster::serve
