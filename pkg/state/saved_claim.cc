// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/saved_claim.h"

#include <optional>
#include <utility>

#include "pkg/api/state.pb.h"
#include "pkg/claims/claim_options.h"

namespace resmgr {
namespace {

StatusOr<std::pair<ClaimPart, Placement>> SavedPartOf(const state::ClaimPart& kept) {
  ClaimPart part{.request = kept.request(), .device = kept.device(), .cpus = kept.cpus()};
  if (kept.has_node()) part.node = kept.node();
  if (kept.has_l3_of()) part.l3_of = kept.l3_of();
  if (part.cpus < 1) return InvalidArgument("a part of a claim without CPUs");
  Placement place;
  RESMGR_ASSIGN_OR_RETURN(place.exclusive, CpuSet::Parse(kept.granted()));
  if (!place.exclusive.empty()) place.cpus = place.exclusive;
  if (kept.has_seen()) {
    RESMGR_ASSIGN_OR_RETURN(place.cpus, CpuSet::Parse(std::string_view(kept.seen())));
  }
  if (kept.has_mems()) {
    RESMGR_ASSIGN_OR_RETURN(place.mems, NodeSet::Parse(kept.mems()));
  }
  RESMGR_ASSIGN_OR_RETURN(place.counted_mems, NodeSet::Parse(kept.place().counted_mems()));
  place.pool = kept.place().pool();
  place.reason = kept.place().reason();
  return std::pair(std::move(part), std::move(place));
}

void EncodeOptions(const ClaimOptions& options, state::Claim& kept) {
  kept.set_whole_cores(options.whole_cores);
  kept.set_share_within_pod(options.share_within_pod);
  if (options.core_type) kept.set_core_type(std::string(CoreTypeName(*options.core_type)));
  kept.set_l3(options.l3);
  kept.set_avoid_siblings(options.avoid_siblings);
}

ClaimOptions DecodeOptions(const state::Claim& kept) {
  return {.whole_cores = kept.whole_cores(),
          .share_within_pod = kept.share_within_pod(),
          .core_type = ParseCoreType(kept.core_type()),
          .l3 = kept.l3(),
          .avoid_siblings = kept.avoid_siblings()};
}

}  // namespace

std::string EncodeClaim(const SavedClaim& saved) {
  state::Claim kept;
  kept.set_namespace_(saved.claim.namespace_name);
  kept.set_name(saved.claim.name);
  EncodeOptions(saved.claim.options, kept);
  kept.set_number(saved.number);
  kept.set_driver(saved.claim.driver);
  kept.set_pod_claim(saved.claim.pod_claim);
  for (size_t i = 0; i < saved.claim.parts.size(); ++i) {
    const ClaimPart& part = saved.claim.parts[i];
    const Placement& place = saved.places.at(i);
    state::ClaimPart& one = *kept.add_parts();
    one.set_request(part.request);
    one.set_device(part.device);
    if (part.node) one.set_node(*part.node);
    if (part.l3_of) one.set_l3_of(*part.l3_of);
    one.set_cpus(part.cpus);
    one.set_granted(place.exclusive.ToString());
    if (place.cpus && *place.cpus != place.exclusive) one.set_seen(place.cpus->ToString());
    if (i < saved.claim.pools.size()) one.set_pool(saved.claim.pools[i]);
    if (place.mems) one.set_mems(place.mems->ToString());
    one.mutable_place()->set_counted_mems(place.counted_mems.ToString());
    one.mutable_place()->set_pool(place.pool);
    one.mutable_place()->set_reason(place.reason);
  }
  for (const std::string& pod : saved.claim.pods)
    kept.add_pods(pod);
  for (const SavedCarrier& carrier : saved.carriers) {
    state::ClaimCarrier& one = *kept.add_carriers();
    one.set_pod_id(carrier.pod);
    one.set_container(carrier.container);
    one.set_attempt(carrier.attempt);
  }
  return kept.SerializeAsString();
}

StatusOr<SavedClaim> DecodeClaim(std::string_view uid, std::string_view bytes) {
  state::Claim kept;
  if (!kept.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("these bytes are no claim");
  }
  SavedClaim saved;
  saved.claim = {.uid = std::string(uid),
                 .namespace_name = kept.namespace_(),
                 .name = kept.name(),
                 .parts = {},
                 .options = DecodeOptions(kept)};
  saved.claim.pods.assign(kept.pods().begin(), kept.pods().end());
  saved.claim.driver = kept.driver();
  saved.claim.pod_claim = kept.pod_claim();
  saved.number = kept.number();
  if (kept.parts().empty()) return InvalidArgument("a claim without parts");
  for (const state::ClaimPart& one : kept.parts()) {
    StatusOr<std::pair<ClaimPart, Placement>> part = SavedPartOf(one);
    if (!part.ok()) return part.status();
    saved.claim.parts.push_back(std::move(part->first));
    saved.places.push_back(std::move(part->second));
    if (!one.pool().empty()) saved.claim.pools.push_back(one.pool());
  }
  if (saved.claim.pools.size() != saved.claim.parts.size()) saved.claim.pools.clear();
  for (const state::ClaimCarrier& one : kept.carriers()) {
    saved.carriers.push_back(
        {.pod = one.pod_id(), .container = one.container(), .attempt = one.attempt()});
  }
  return saved;
}

}  // namespace resmgr
