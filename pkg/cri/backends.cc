// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/backends.h"

#include <algorithm>

#include "pkg/base/parse.h"
#include "pkg/cri/edit_fields.h"

namespace resmgr {
namespace {

using Kind = IdOwners::Kind;

// Limit of warnings about one runtime's claims: if a runtime is configured under two names, it
// claims every id a second time.
constexpr uint64_t kMostWarnings = 8;

constexpr uint32_t kListedEntry = 1;     // in replies of ListPodSandbox and ListContainers
constexpr uint32_t kListedId = 1;        // in both entries
constexpr uint32_t kPodMetadata = 2;     // in PodSandbox
constexpr uint32_t kUidOfPod = 2;        // in PodSandboxMetadata
constexpr uint32_t kStateOfPod = 3;      // in PodSandbox; 0: ready
constexpr uint32_t kPodOfContainer = 2;  // Container.pod_sandbox_id

bool IsOfOther(const IdOwners& owners, Kind kind, size_t backend, std::string_view entry) {
  if (owners.IsOfOther(kind, TextOfField(entry, kListedId), backend)) return true;
  return kind == Kind::kContainer &&
         owners.IsOfOther(Kind::kPodSandbox, TextOfField(entry, kPodOfContainer), backend);
}

bool IsReady(std::string_view pod) {
  uint64_t state = 0;
  (void)ForEachField(pod, [&state](const WireReader& field) {
    if (field.field() == kStateOfPod) state = field.number();
    return true;
  });
  return state == 0;
}

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
      "is left out everywhere; see docs/runtime-classes.md{}",
      backends_[conflict.owner].name, claimant,
      conflict.kind == Kind::kContainer ? "container" : "pod sandbox", Printable(conflict.id),
      backends_[conflict.owner].name, claimant,
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
  // If the owner is unclear, all runtimes are asked, and each applies the filter itself.
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

Status LearnList(IdOwners& owners, Kind kind, size_t backend, std::string_view list,
                 IdOwners::ListBegin begin) {
  std::vector<std::string_view> entries;
  const bool read = ForEachField(list, [&entries](const WireReader& field) {
    if (field.field() != kListedEntry || !field.is_bytes()) return true;
    entries.push_back(field.bytes());
    return ForEachField(field.bytes(), [](const WireReader&) { return true; });
  });
  if (!read) return InvalidArgument("the list is malformed protobuf");
  std::vector<std::string_view> ids;
  for (const std::string_view entry : entries) {
    const bool in_others_pod =
        kind == Kind::kContainer &&
        owners.IsOfOther(Kind::kPodSandbox, TextOfField(entry, kPodOfContainer), backend);
    if (!in_others_pod) ids.push_back(TextOfField(entry, kListedId));
  }
  owners.SetAll(kind, backend, ids, begin);
  if (kind != Kind::kPodSandbox) return OkStatus();
  std::vector<std::string_view> uids;
  for (const std::string_view entry : entries) {
    if (IsOfOther(owners, kind, backend, entry)) continue;
    const std::string_view uid = TextOfField(TextOfField(entry, kPodMetadata), kUidOfPod);
    // A stopped sandbox is not the last one of a pod that another runtime has, too.
    if (!IsReady(entry) && owners.IsOfOther(Kind::kPodUid, uid, backend)) continue;
    uids.push_back(uid);
  }
  owners.SetAll(Kind::kPodUid, backend, uids, begin);
  return OkStatus();
}

std::optional<std::string> WithoutThoseOfOthers(const Backends& backends, Kind kind, size_t backend,
                                                std::string_view list) {
  return WithoutFields(list, [&](const WireReader& field) {
    return field.field() == kListedEntry && field.is_bytes() &&
           IsOfOther(backends.owners(), kind, backend, field.bytes());
  });
}

}  // namespace resmgr
