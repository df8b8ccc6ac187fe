// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/carrier_notes.h"

#include <algorithm>
#include <utility>

namespace resmgr {
namespace {

using CarrierRecords = std::vector<const ContainerRecord*>;

// Attempts that are noted for each container: if the last one fails, the one before it may come
// back.
constexpr std::ptrdiff_t kNotedAttempts = 2;

SavedCarrier CarrierOf(const ContainerRecord& record) {
  return {.pod = std::string(record.pod->pod.id.value()),
          .container = std::string(record.CreatedName()),
          .attempt = record.container.attempt};
}

bool CarriesClaim(const std::vector<std::string>& uids, const std::string& uid) {
  return std::ranges::find(uids, uid) != uids.end();
}

// Containers that are known and carry the claim, ascending by key.
CarrierRecords CarriersOf(const std::string& uid, const ClaimCarriers& carriers,
                          const ContainerStore& store) {
  CarrierRecords records;
  for (const auto& [key, uids] : carriers) {
    const ContainerRecord* const record = store.Find(key);
    if (record != nullptr && CarriesClaim(uids, uid)) records.push_back(record);
  }
  return records;
}

// Sorts, and keeps the newest attempts of each container.
void KeepNewest(std::vector<SavedCarrier>& noted) {
  std::ranges::sort(noted, {}, [](const SavedCarrier& one) {
    return std::pair(std::string_view(one.container), one.attempt);
  });
  std::vector<SavedCarrier> kept;
  for (auto at = noted.begin(); at != noted.end();) {
    const auto end = std::find_if(
        at, noted.end(), [at](const SavedCarrier& one) { return one.container != at->container; });
    kept.insert(kept.end(), end - std::min(end - at, kNotedAttempts), end);
    at = end;
  }
  noted = std::move(kept);
}

// Listed containers that are noted as carriers of the claim; of several attempts of a container
// only the last.
CarrierRecords NotedFor(const HeldClaim& held, std::span<const SavedCarrier> noted,
                        const CarrierNotes::Listed& listed) {
  std::map<std::string_view, const ContainerRecord*> last;
  for (const ContainerKey key : listed.adopted) {
    const ContainerRecord* const record = listed.store.Find(key);
    if (record == nullptr || record->pod->pod.namespace_name != held.claim.namespace_name) continue;
    const bool is_noted = std::ranges::any_of(noted, [record](const SavedCarrier& one) {
      return one.attempt == record->container.attempt && one.container == record->CreatedName() &&
             one.pod == record->pod->pod.id.value();
    });
    if (!is_noted) continue;
    const ContainerRecord*& slot = last[record->CreatedName()];
    if (slot == nullptr || slot->container.attempt < record->container.attempt) slot = record;
  }
  CarrierRecords records;
  for (const auto& [name, record] : last)
    records.push_back(record);
  return records;
}

// Claims of the container's namespace whose CPUs together are exactly the CPUs of the container;
// none if it may be there for another reason.
std::vector<const HeldClaim*> ClaimsByCpus(ContainerKey key,
                                           std::span<const HeldClaim* const> claims,
                                           const CarrierNotes::Listed& listed) {
  const ContainerRecord* const record = listed.store.Find(key);
  if (record == nullptr || !record->container.placement.cpus) return {};
  // While an update is under way, the container may still be on shared CPUs that have since become
  // a claim's.
  if (listed.state_writer.calls().Contains(OpenCalls::Kind::kUpdate, record->container.id))
    return {};
  CpuSet left = *record->container.placement.cpus;
  std::vector<const HeldClaim*> found;
  for (const HeldClaim* const held : claims) {
    const CpuSet cpus = held->Seen();
    const bool own = held->claim.namespace_name == record->pod->pod.namespace_name;
    if (!own || cpus.empty() || !cpus.IsSubsetOf(left)) continue;
    left -= cpus;
    found.push_back(held);
  }
  return left.empty() ? found : std::vector<const HeldClaim*>();
}

// Whether all these containers may carry the claim at once.
bool MayCarry(const HeldClaim& held, std::span<const ContainerRecord* const> records) {
  if (records.size() < 2) return true;
  return held.claim.options.share_within_pod &&
         std::ranges::all_of(records, [&records](const ContainerRecord* record) {
           return record->pod == records.front()->pod;
         });
}

}  // namespace

void CarrierNotes::Take(const std::string& uid, std::vector<SavedCarrier> carriers) {
  if (!carriers.empty()) notes_[uid] = std::move(carriers);
}

bool CarrierNotes::Update(const HeldClaims& held, const ClaimCarriers& carriers,
                          const ContainerStore& store) {
  // Keys only grow, and a container carries its claims from its first decision on: so a new carrier
  // has a larger key.
  if (carriers.empty() || carriers.rbegin()->first <= last_) return false;
  last_ = carriers.rbegin()->first;
  bool changed = false;
  for (const HeldClaim& claim : held.all()) {
    const CarrierRecords records = CarriersOf(claim.claim.uid, carriers, store);
    if (records.empty()) continue;
    const SavedCarrier newest = CarrierOf(*records.back());
    const auto others = [&claim, &newest](const SavedCarrier& one) {
      if (one.pod != newest.pod) return true;
      return !claim.claim.options.share_within_pod && one.container != newest.container;
    };
    std::vector<SavedCarrier>& noted = notes_[claim.claim.uid];
    std::vector<SavedCarrier> now = noted;
    for (const ContainerRecord* const record : records) {
      const SavedCarrier carrier = CarrierOf(*record);
      if (std::ranges::find(now, carrier) == now.end()) now.push_back(carrier);
    }
    std::erase_if(now, others);
    KeepNewest(now);
    changed = changed || now != noted;
    noted = std::move(now);
  }
  return changed;
}

void CarrierNotes::Retain(const HeldClaims& held) {
  std::erase_if(notes_, [&held](const auto& note) { return held.Find(note.first) == nullptr; });
}

std::vector<SavedCarrier> CarrierNotes::Of(const std::string& uid) const {
  const auto noted = notes_.find(uid);
  return noted == notes_.end() ? std::vector<SavedCarrier>() : noted->second;
}

ClaimCarriers CarrierNotes::Find(const HeldClaims& held, const Listed& listed) const {
  ClaimCarriers found;
  std::vector<const HeldClaim*> free;  // claims without a known carrier
  for (const HeldClaim& claim : held.all()) {
    const std::string& uid = claim.claim.uid;
    CarrierRecords present = CarriersOf(uid, listed.carriers, listed.store);
    std::erase_if(present, [](const ContainerRecord* record) { return !record->Placeable(); });
    const CarrierRecords noted = NotedFor(claim, Of(uid), listed);
    if (present.empty() && noted.empty()) free.push_back(&claim);
    for (const ContainerRecord* const record : noted) {
      present.push_back(record);
      if (MayCarry(claim, present)) {
        found[record->container.key].push_back(uid);
      } else {
        present.pop_back();
      }
    }
  }
  std::map<const HeldClaim*, CarrierRecords> by_cpus;
  std::map<ContainerKey, std::vector<const HeldClaim*>> claims;
  for (const ContainerKey key : listed.without_notes) {
    if (!std::ranges::binary_search(listed.adopted, key) || found.contains(key)) continue;
    claims[key] = ClaimsByCpus(key, free, listed);
    for (const HeldClaim* const claim : claims[key])
      by_cpus[claim].push_back(listed.store.Find(key));
  }
  for (const auto& [key, of_container] : claims) {
    const bool sure = std::ranges::all_of(of_container, [&by_cpus](const HeldClaim* const claim) {
      return MayCarry(*claim, by_cpus.at(claim));
    });
    if (!sure) continue;
    for (const HeldClaim* const claim : of_container)
      found[key].push_back(claim->claim.uid);
  }
  return found;
}

}  // namespace resmgr
