// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/saved_container.h"

#include "pkg/api/state.pb.h"
#include "pkg/base/wire.h"

namespace resmgr {
namespace {

// Written by hand: it is done for each container that is created, in the loop.
void Append(uint32_t field, const std::optional<int64_t>& number, std::string& out) {
  if (number) AppendNumberField(field, static_cast<uint64_t>(*number), out);
}

void Append(uint32_t field, const std::optional<std::string>& text, std::string& out) {
  if (text) AppendBytesField(field, *text, out);
}

void AppendNonZero(uint32_t field, int64_t number, std::string& out) {
  if (number != 0) AppendNumberField(field, static_cast<uint64_t>(number), out);
}

void AppendNonEmpty(uint32_t field, std::string_view text, std::string& out) {
  if (!text.empty()) AppendBytesField(field, text, out);
}

void AppendResources(uint32_t field, const LinuxResources& resources, std::string& out) {
  const size_t begin = BeginMessageField(field, out);
  Append(1, resources.cpu_period, out);
  Append(2, resources.cpu_quota, out);
  Append(3, resources.cpu_shares, out);
  Append(4, resources.memory_limit, out);
  Append(5, resources.oom_score_adj, out);
  Append(6, resources.cpuset_cpus, out);
  Append(7, resources.cpuset_mems, out);
  for (const auto& [size, limit] : resources.hugepage_limits) {
    const size_t entry = BeginMessageField(8, out);
    AppendNonEmpty(1, size, out);
    AppendNonZero(2, static_cast<int64_t>(limit), out);
    EndMessageField(entry, out);
  }
  EndMessageField(begin, out);
}

void AppendRequirements(uint32_t field, const Requirements& requirements, std::string& out) {
  const size_t begin = BeginMessageField(field, out);
  AppendNonZero(1, requirements.cpu_request.value, out);
  AppendNonZero(2, requirements.cpu_limit.value, out);
  AppendNonZero(3, requirements.memory_request.value, out);
  AppendNonZero(4, requirements.memory_limit.value, out);
  EndMessageField(begin, out);
}

void AppendHint(uint32_t field, const LocalityHint& hint, std::string& out) {
  const size_t begin = BeginMessageField(field, out);
  AppendNonEmpty(1, hint.source, out);
  AppendNonEmpty(2, hint.cpus.ToString(), out);
  AppendNonEmpty(3, hint.nodes.ToString(), out);
  EndMessageField(begin, out);
}

LinuxResources Decode(const state::Resources& in) {
  LinuxResources resources;
  if (in.has_cpu_period()) resources.cpu_period = in.cpu_period();
  if (in.has_cpu_quota()) resources.cpu_quota = in.cpu_quota();
  if (in.has_cpu_shares()) resources.cpu_shares = in.cpu_shares();
  if (in.has_memory_limit()) resources.memory_limit = in.memory_limit();
  if (in.has_oom_score_adj()) resources.oom_score_adj = in.oom_score_adj();
  if (in.has_cpuset_cpus()) resources.cpuset_cpus = in.cpuset_cpus();
  if (in.has_cpuset_mems()) resources.cpuset_mems = in.cpuset_mems();
  for (const state::HugepageLimit& entry : in.hugepage_limits())
    resources.hugepage_limits[entry.page_size()] = entry.limit();
  return resources;
}

Requirements Decode(const state::Requirements& in) {
  return {.cpu_request = MilliCpu{in.cpu_request()},
          .cpu_limit = MilliCpu{in.cpu_limit()},
          .memory_request = Bytes{in.memory_request()},
          .memory_limit = Bytes{in.memory_limit()}};
}

}  // namespace

void EncodeSaved(const Container& container, std::string& out) {
  const Placement& placement = container.placement;
  AppendResources(1, container.requested, out);
  AppendRequirements(2, container.requirements, out);
  if (!placement.exclusive.empty()) AppendBytesField(3, placement.exclusive.ToString(), out);
  Append(4, placement.cpu_shares, out);
  Append(5, placement.cpu_quota, out);
  Append(6, placement.cpu_period, out);
  AppendNonEmpty(7, placement.pool, out);
  AppendNonEmpty(8, placement.reason, out);
  for (const LocalityHint& hint : container.hints)
    AppendHint(9, hint, out);
}

StatusOr<SavedContainer> DecodeSaved(std::string_view bytes) {
  state::Container in;
  if (!in.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || !in.has_requested() ||
      !in.has_requirements()) {
    return InvalidArgument("not a saved container");
  }
  SavedContainer saved;
  saved.requested = Decode(in.requested());
  saved.requirements = Decode(in.requirements());
  RESMGR_ASSIGN_OR_RETURN(saved.exclusive, CpuSet::Parse(in.exclusive()));
  if (in.has_cpu_shares()) saved.cpu_shares = in.cpu_shares();
  if (in.has_cpu_quota()) saved.cpu_quota = in.cpu_quota();
  if (in.has_cpu_period()) saved.cpu_period = in.cpu_period();
  saved.pool = in.pool();
  saved.reason = in.reason();
  for (const state::LocalityHint& entry : in.hints()) {
    LocalityHint& hint = saved.hints.emplace_back();
    hint.source = entry.source();
    RESMGR_ASSIGN_OR_RETURN(hint.cpus, CpuSet::Parse(entry.cpus()));
    RESMGR_ASSIGN_OR_RETURN(hint.nodes, NodeSet::Parse(entry.nodes()));
  }
  return saved;
}

}  // namespace resmgr
