// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/backends.h"

#include <algorithm>
#include <optional>

namespace resmgr {

StatusOr<Backends::Choice> Backends::Choose(const CallRoute& route, const RouteKeys& keys) const {
  using Kind = IdOwners::Kind;
  switch (route.by) {
    case CallRoute::By::kDefault:
      return Choice();
    case CallRoute::By::kHandler:
      return Choice{.backend = OfHandler(keys.handler)};
    case CallRoute::By::kImagePull:
      if (!keys.handler.empty()) return Choice{.backend = OfHandler(keys.handler)};
      if (keys.id.empty()) return Choice();
      [[fallthrough]];
    case CallRoute::By::kId: {
      RESMGR_ASSIGN_OR_RETURN(const std::optional<size_t> owner,
                              owners_.Find(route.id_kind, keys.id));
      if (owner) return Choice{.backend = *owner};
      return Choice{.kind = Choice::Kind::kUnknownId};
    }
    case CallRoute::By::kAll:
    case CallRoute::By::kEach:
      break;
  }
  if (!keys.handler.empty()) return Choice{.backend = OfHandler(keys.handler)};
  // What several runtimes may have, each of them filters itself.
  std::optional<size_t> owner =
      owners_.Find(Kind::kContainer, keys.container_id).value_or(std::nullopt);
  if (!owner) owner = owners_.Find(Kind::kPodSandbox, keys.pod_sandbox_id).value_or(std::nullopt);
  if (owner) return Choice{.backend = *owner};
  return Choice{.kind = Choice::Kind::kAll};
}

size_t Backends::OfHandler(std::string_view handler) const {
  const auto it = std::ranges::find_if(backends_, [handler](const Backend& backend) {
    return std::ranges::find(backend.handlers, handler) != backend.handlers.end();
  });
  return it == backends_.end() ? 0 : static_cast<size_t>(it - backends_.begin());
}

}  // namespace resmgr
