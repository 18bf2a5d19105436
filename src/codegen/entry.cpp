#include "codegen/entry.h"

#include <exception>

#include "codegen/object.h"

extern "C" __attribute__((visibility("default"))) void muster_codegen(const muster::codegen::Request* request) {
  if (request->version != muster::codegen::kVersion) {
    request->failed(request->sink, "the module is of another version of muster");
    return;
  }
  try {
    const auto bytes = muster::codegen::make_object({request->nests, request->count}, request->isa);
    request->object(request->sink, bytes.data(), bytes.size());
  } catch (const std::exception& e) {
    request->failed(request->sink, e.what());
  }
}
