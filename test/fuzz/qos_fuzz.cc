// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "pkg/kube/qos.h"

// A pod has a UID, and the UID comes from the path.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view path(reinterpret_cast<const char*>(data), size);
  const auto pod = resmgr::ParsePodCgroup(path);
  if (!pod) return 0;
  if (pod->uid.empty() || pod->uid.value().size() > path.size()) std::abort();
  if (pod->uid.value().find('/') != std::string::npos) std::abort();
  return 0;
}
