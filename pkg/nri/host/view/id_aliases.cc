// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/view/id_aliases.h"

#include <array>

#include <fmt/format.h>

#include "pkg/base/text_hash.h"

namespace resmgr::nri {

std::string AliasOf(const PodSandboxId& pod, std::string_view name, uint32_t attempt) {
  constexpr int kParts = 4;  // parts of 64 bits
  std::string text = fmt::format("{}/{}/{}/{}", 0, pod.value(), attempt, name);
  std::array<size_t, kParts> parts;
  for (size_t& part : parts) {
    part = TextHash()(text);
    ++text[0];
  }
  return fmt::format("{:016x}{:016x}{:016x}{:016x}", parts[0], parts[1], parts[2], parts[3]);
}

}  // namespace resmgr::nri
