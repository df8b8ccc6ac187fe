// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <google/protobuf/map.h>
#include <google/protobuf/repeated_field.h>

#include "pkg/base/ids.h"
#include "pkg/base/status.h"
#include "pkg/nri/host/merge/field_ledger.h"

namespace resmgr::nri {

// The key of an entry that a plugin removes has "-" in front (NRI 0.6). This concerns annotations,
// mounts, environment variables, devices, namespaces, sysctls and network devices.

// The removed key; nullopt: the entry is set.
std::optional<std::string_view> RemovedKey(std::string_view written);
std::string Removal(std::string_view key);

// Claims one entry by its key without the mark. kInvalidArgument: an impossible key: an empty one,
// or a variable's name with "=" or NUL, which could pass for another name.
Status ClaimEntry(const FieldLedger::Claimant& claimant, api::Field field, std::string_view key);
Status ClearEntry(const FieldLedger::Claimant& claimant, api::Field field, std::string_view key);

// One plugin's edits of a map, such as annotations, otherwise like ListEdits. Maps have no order:
// in the sum of all plugins' edits, apply removals first.
template <typename Value>
class MapEdits {
 public:
  using Entries = google::protobuf::Map<std::string, Value>;

  MapEdits(api::Field field, const Entries& reply) : field_(field), reply_(reply) {}

  Status Claim(const FieldLedger::Claimant& claimant) const {
    for (const auto& [written, value] : reply_) {
      if (const auto key = RemovedKey(written)) {
        RESMGR_RETURN_IF_ERROR(ClearEntry(claimant, field_, *key));
      }
    }
    for (const auto& [key, value] : reply_)
      if (!RemovedKey(key)) RESMGR_RETURN_IF_ERROR(ClaimEntry(claimant, field_, key));
    return OkStatus();
  }

  void AddTo(Entries& merged) const {
    ShowIn(merged);
    for (const auto& [written, value] : reply_)
      if (RemovedKey(written)) merged[written] = Value();
  }

  void ShowIn(Entries& shown) const {
    for (const auto& [written, value] : reply_)
      if (const auto key = RemovedKey(written)) shown.erase(std::string(*key));
    for (const auto& [key, value] : reply_)
      if (!RemovedKey(key)) shown[key] = value;
  }

 private:
  api::Field field_;
  const Entries& reply_;
};

// One plugin's edits of a list whose entries have keys, such as mounts. All removals of a reply
// take effect before the values that it sets, in whatever order the reply has them (NRI 0.6): an
// entry that is both removed and set is replaced. Refers to the reply. Takes time in proportion to
// the lists. Immutable.
//
// Kind describes the entries:
//   Entry, kField      their type and their field
//   kRemovable         whether a key may have the mark of removal
//   KeyOf, SetKey      the key as it is written
//   ShownKeyOf, Show   the key of an entry as containers have it, and an entry in that form
template <typename Kind>
class ListEdits {
 public:
  using Entry = typename Kind::Entry;
  using Entries = google::protobuf::RepeatedPtrField<Entry>;

  explicit ListEdits(const Entries& reply) {
    for (const Entry& entry : reply) {
      if (const auto key = Removed(entry)) {
        if (removed_.insert(*key).second) removals_.push_back(*key);
      } else {
        set_.push_back(&entry);
      }
    }
  }

  bool empty() const { return set_.empty() && removals_.empty(); }

  Status Claim(const FieldLedger::Claimant& claimant) const {
    for (const std::string_view key : removals_)
      RESMGR_RETURN_IF_ERROR(ClearEntry(claimant, Kind::kField, key));
    for (const Entry* const entry : set_)
      RESMGR_RETURN_IF_ERROR(ClaimEntry(claimant, Kind::kField, Kind::KeyOf(*entry)));
    return OkStatus();
  }

  // Adds the edits to the sum of all plugins' edits: removals stay in it, each before the value
  // that replaces the removed one. The claims must have been granted, which makes keys unique.
  void AddTo(Entries& merged) const {
    if (!removed_.empty()) {
      Compact(merged, [this](const Entry& entry) {
        const std::string_view key = Kind::KeyOf(entry);
        return !removed_.contains(Removed(entry).value_or(key));
      });
    }
    for (const std::string_view key : removals_)
      Kind::SetKey(Removal(key), *merged.Add());
    for (const Entry* const entry : set_)
      *merged.Add() = *entry;
  }

  // Applies the edits to a container as the next plugin sees it. A replaced entry keeps its place.
  template <typename Shown>
  void ShowIn(google::protobuf::RepeatedPtrField<Shown>& shown) const {
    if (empty()) return;
    std::unordered_map<std::string_view, const Entry*, TextHash> pending;
    for (const Entry* const entry : set_)
      pending.emplace(Kind::KeyOf(*entry), entry);
    Compact(shown, [&](Shown& entry) {
      const std::string_view key = Kind::ShownKeyOf(entry);
      const auto found = pending.find(key);
      if (found == pending.end()) return !removed_.contains(key);
      if (found->second == nullptr) return false;
      Kind::Show(*found->second, entry);
      found->second = nullptr;
      return true;
    });
    for (const Entry* const entry : set_)
      if (pending[Kind::KeyOf(*entry)] != nullptr) Kind::Show(*entry, *shown.Add());
  }

 private:
  static std::optional<std::string_view> Removed(const Entry& entry) {
    if constexpr (Kind::kRemovable) return RemovedKey(Kind::KeyOf(entry));
    return std::nullopt;
  }

  // Keeps only the entries for which `stays` is true, in their order.
  template <typename Any, typename Stays>
  static void Compact(google::protobuf::RepeatedPtrField<Any>& list, const Stays& stays) {
    int kept = 0;
    for (int i = 0; i < list.size(); ++i)
      if (stays(*list.Mutable(i))) list.SwapElements(kept++, i);
    list.DeleteSubrange(kept, list.size() - kept);
  }

  std::vector<const Entry*> set_;
  std::vector<std::string_view> removals_;  // keys, each once, in the reply's order
  std::unordered_set<std::string_view, TextHash> removed_;
};

}  // namespace resmgr::nri
