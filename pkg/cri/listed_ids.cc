// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/listed_ids.h"

#include <cstdint>
#include <vector>

#include "pkg/cri/edit_fields.h"
#include "pkg/cri/for_each_field.h"

namespace resmgr {
namespace {

using Kind = IdOwners::Kind;

constexpr uint32_t kListed = 1;          // in both replies
constexpr uint32_t kId = 1;              // in both entries
constexpr uint32_t kPodMetadata = 2;     // in PodSandbox
constexpr uint32_t kUid = 2;             // in PodSandboxMetadata
constexpr uint32_t kPodOfContainer = 2;  // Container.pod_sandbox_id

bool IsOfOther(const IdOwners& owners, Kind kind, size_t backend, std::string_view entry) {
  if (owners.IsOfOther(kind, TextOfField(entry, kId), backend)) return true;
  return kind == Kind::kContainer &&
         owners.IsOfOther(Kind::kPodSandbox, TextOfField(entry, kPodOfContainer), backend);
}

}  // namespace

Status LearnList(IdOwners& owners, Kind kind, size_t backend, std::string_view list,
                 IdOwners::ListBegin begin) {
  std::vector<std::string_view> entries;
  const bool read = ForEachField(list, [&entries](const WireReader& field) {
    if (field.field() != kListed || !field.is_bytes()) return true;
    entries.push_back(field.bytes());
    return ForEachField(field.bytes(), [](const WireReader&) { return true; });
  });
  if (!read) return InvalidArgument("the list is malformed protobuf");
  std::vector<std::string_view> ids;
  for (const std::string_view entry : entries) {
    const bool in_others_pod =
        kind == Kind::kContainer &&
        owners.IsOfOther(Kind::kPodSandbox, TextOfField(entry, kPodOfContainer), backend);
    if (!in_others_pod) ids.push_back(TextOfField(entry, kId));
  }
  owners.SetAll(kind, backend, ids, begin);
  if (kind != Kind::kPodSandbox) return OkStatus();
  std::vector<std::string_view> uids;
  for (const std::string_view entry : entries) {
    if (IsOfOther(owners, kind, backend, entry)) continue;
    uids.push_back(TextOfField(TextOfField(entry, kPodMetadata), kUid));
  }
  owners.SetAll(Kind::kPodUid, backend, uids, begin);
  return OkStatus();
}

std::optional<std::string> WithoutThoseOfOthers(const Backends& backends, Kind kind, size_t backend,
                                                std::string_view list) {
  std::string kept;
  bool left_out = false;
  std::string_view rest = list;
  const bool read = ForEachField(list, [&](const WireReader& field) {
    const std::string_view whole = rest.substr(0, rest.size() - field.rest().size());
    rest = field.rest();
    const bool is_entry = field.field() == kListed && field.is_bytes();
    if (is_entry && IsOfOther(backends.owners(), kind, backend, field.bytes())) {
      left_out = true;
    } else {
      kept += whole;
    }
    return true;
  });
  if (!read || !left_out) return std::nullopt;
  return kept;
}

}  // namespace resmgr
