// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "pkg/kube/resources_annotation.h"

// Anybody who may create pods writes this text: no needs are negative, and nothing else happens.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  const auto parsed = resmgr::ParseResourcesAnnotation(json, "web");
  if (!parsed.ok() || !parsed->has_value()) return 0;
  const resmgr::Requirements& needs = **parsed;
  if (needs.cpu_request.value < 0 || needs.cpu_limit.value < 0 || needs.memory_request.value < 0 ||
      needs.memory_limit.value < 0) {
    std::abort();
  }
  return 0;
}
