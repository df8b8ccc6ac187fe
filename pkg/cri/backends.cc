// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/backends.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "pkg/base/parse.h"

namespace resmgr {

namespace {

// Limit of the warnings for one runtime: if two names lead to the same runtime, it claims
// everything twice.
constexpr uint64_t kMostWarnings = 8;

}  // namespace

Backends::Backends(std::vector<Backend> backends, const HandlerAliases* aliases)
    : backends_(std::move(backends)),
      aliases_(aliases),
      calls_(backends_.size()),
      hangs_(backends_.size()),
      log_(GetLogger("cri")) {
  owners_.OnConflict([this](const IdOwners::Conflict& conflict) { OnConflict(conflict); });
}

void Backends::OnConflict(const IdOwners::Conflict& conflict) {
  const std::string& claimant = backends_[conflict.claimant].name;
  const uint64_t claims = ++calls_[conflict.claimant].refused_claims;
  if (claims > kMostWarnings) return;
  log_.Warn(
      "runtimes {} and {} have the same {} {}: it stays that of {}, and what {} has under this id "
      "is "
      "left out everywhere; see docs/runtime-classes.md{}",
      backends_[conflict.owner].name, claimant,
      conflict.kind == IdOwners::Kind::kContainer ? "container" : "pod sandbox",
      Printable(conflict.id), backends_[conflict.owner].name, claimant,
      claims == kMostWarnings
          ? fmt::format(". Further ones of {} are counted in runtime_refused_claims_total",
                        claimant)
          : "");
}

std::optional<size_t> Backends::Find(std::string_view name) const {
  const auto it = std::ranges::find(backends_, name, &Backend::name);
  if (it == backends_.end()) return std::nullopt;
  return static_cast<size_t>(it - backends_.begin());
}

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
  // If several runtimes may match, each of them applies the filter itself.
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
