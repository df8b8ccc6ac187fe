// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/id_aliases.h"

#include <fmt/format.h>

#include "pkg/base/text_hash.h"

namespace resmgr::nri {

std::string AliasOf(const PodSandboxId& pod, std::string_view name, uint32_t attempt) {
  constexpr int kParts = 4;  // of 64 bits
  std::string alias;
  for (int part = 0; part < kParts; ++part) {
    const std::string text = fmt::format("{}/{}/{}/{}", part, pod.value(), attempt, name);
    alias += fmt::format("{:016x}", TextHash()(text));
  }
  return alias;
}

}  // namespace resmgr::nri
