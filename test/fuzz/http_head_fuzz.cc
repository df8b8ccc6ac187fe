// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "pkg/metrics/http_server.h"

// A head that is accepted has a method and a path, and nothing in it is longer than the head.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto request =
      resmgr::ParseHttpHead(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!request.ok()) return 0;
  if (request->method.empty() || !request->path.starts_with('/')) std::abort();
  const size_t longest =
      request->method.size() + request->path.size() + request->query.size() + request->host.size();
  if (longest > size || request->fetch_site.size() > size) std::abort();
  return 0;
}
