// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/saved_container.h"

#include "pkg/api/state.pb.h"

namespace resmgr {
namespace {

void Encode(const LinuxResources& resources, state::Resources& out) {
  if (resources.cpu_period) out.set_cpu_period(*resources.cpu_period);
  if (resources.cpu_quota) out.set_cpu_quota(*resources.cpu_quota);
  if (resources.cpu_shares) out.set_cpu_shares(*resources.cpu_shares);
  if (resources.memory_limit) out.set_memory_limit(*resources.memory_limit);
  if (resources.oom_score_adj) out.set_oom_score_adj(*resources.oom_score_adj);
  if (resources.cpuset_cpus) out.set_cpuset_cpus(*resources.cpuset_cpus);
  if (resources.cpuset_mems) out.set_cpuset_mems(*resources.cpuset_mems);
  for (const auto& [size, limit] : resources.hugepage_limits) {
    state::HugepageLimit& entry = *out.add_hugepage_limits();
    entry.set_page_size(size);
    entry.set_limit(limit);
  }
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

void Encode(const Requirements& requirements, state::Requirements& out) {
  out.set_cpu_request(requirements.cpu_request.value);
  out.set_cpu_limit(requirements.cpu_limit.value);
  out.set_memory_request(requirements.memory_request.value);
  out.set_memory_limit(requirements.memory_limit.value);
}

Requirements Decode(const state::Requirements& in) {
  return {.cpu_request = MilliCpu{in.cpu_request()},
          .cpu_limit = MilliCpu{in.cpu_limit()},
          .memory_request = Bytes{in.memory_request()},
          .memory_limit = Bytes{in.memory_limit()}};
}

}  // namespace

SavedContainer ToSaved(const Container& container) {
  const Placement& placement = container.placement;
  return {
      .exclusive = placement.exclusive,
      .cpu_shares = placement.cpu_shares,
      .cpu_quota = placement.cpu_quota,
      .cpu_period = placement.cpu_period,
      .pool = placement.pool,
      .reason = placement.reason,
      .requested = container.requested,
      .requirements = container.requirements,
      .hints = container.hints,
  };
}

bool Matches(const SavedContainer& saved, const Container& container) {
  const Placement& placement = container.placement;
  return saved.exclusive == placement.exclusive && saved.cpu_shares == placement.cpu_shares &&
         saved.cpu_quota == placement.cpu_quota && saved.cpu_period == placement.cpu_period &&
         saved.requirements == container.requirements && saved.pool == placement.pool &&
         saved.reason == placement.reason && saved.requested == container.requested &&
         saved.hints == container.hints;
}

std::string EncodeSaved(const SavedContainer& saved) {
  // One for all: it keeps the memory of its parts.
  thread_local state::Container out;
  out.Clear();
  Encode(saved.requested, *out.mutable_requested());
  Encode(saved.requirements, *out.mutable_requirements());
  out.set_exclusive(saved.exclusive.ToString());
  if (saved.cpu_shares) out.set_cpu_shares(*saved.cpu_shares);
  if (saved.cpu_quota) out.set_cpu_quota(*saved.cpu_quota);
  if (saved.cpu_period) out.set_cpu_period(*saved.cpu_period);
  out.set_pool(saved.pool);
  out.set_reason(saved.reason);
  for (const LocalityHint& hint : saved.hints) {
    state::LocalityHint& entry = *out.add_hints();
    entry.set_source(hint.source);
    entry.set_cpus(hint.cpus.ToString());
    entry.set_nodes(hint.nodes.ToString());
  }
  return out.SerializeAsString();
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
