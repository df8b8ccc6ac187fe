// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/ids.h"
#include "pkg/base/status.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// NRI's own names of the fields, "CPUShares", "Mounts" (NRI 0.12: enum Field). Empty for an unknown
// number.
std::string_view FieldName(api::Field field);
// Whether each entry of the field has its own owner.
bool IsKeyed(api::Field field);

// One field of a container, or one entry of it, and the plugin that owns it.
struct OwnedField {
  api::Field field = api::FIELD_NONE;
  std::string key{};     // for fields with keys
  std::string plugin{};  // "10-logger"; for hooks, which add up, "10-logger,20-other"
  bool removed = false;  // the plugin removed the value and set none

  friend bool operator==(const OwnedField&, const OwnedField&) = default;
};

// The owner of each field of each container, in the course of one call. A field, or an entry of it,
// has one owner: a second claim conflicts with the first, even by the same plugin (NRI 0.12). A
// plugin that removes a value replaces its former owner, and no other plugin may set the value from
// then on (NRI 0.10).
//
// Claims can be undone to a mark, until they are kept. A claim takes constant time. Containers and
// keys are compared byte by byte. Thread-compatible.
class FieldLedger {
 public:
  // One plugin's claims on one container. Invalid after the end or a move of the ledger.
  class Claimant {
   public:
    // kFailedPrecondition: the field has an owner, perhaps this plugin itself; the message names
    // both plugins and the field.
    Status Claim(api::Field field, std::string_view key = {}) const;
    void Clear(api::Field field, std::string_view key = {}) const;
    // For fields that add up: makes the plugin one of the owners.
    void Join(api::Field field) const;

    const std::string& plugin() const { return ledger_.names_[plugin_]; }

   private:
    friend FieldLedger;
    Claimant(FieldLedger& ledger, uint32_t container, uint32_t plugin)
        : ledger_(ledger), container_(container), plugin_(plugin) {}

    FieldLedger& ledger_;
    uint32_t container_;
    uint32_t plugin_;
  };

  using Mark = size_t;

  FieldLedger() = default;
  FieldLedger(FieldLedger&&) = default;
  FieldLedger& operator=(FieldLedger&&) = default;
  FieldLedger(const FieldLedger&) = delete;
  FieldLedger& operator=(const FieldLedger&) = delete;

  Claimant For(std::string_view container, std::string_view plugin);

  Mark mark() const { return undo_.size(); }
  void UndoTo(Mark mark);
  void Keep() { undo_.clear(); }

  // The validators' form (NRI 0.10): an owner that removed has "-" before its name.
  api::OwningPlugins Report() const;
  // The owned fields of one container, ordered by field and key.
  std::vector<OwnedField> Of(std::string_view container) const;

 private:
  struct Owner {
    uint32_t plugin = 0;  // index in names_
    bool removed = false;
  };
  using Owners = std::unordered_map<std::string, Owner, TextHash, std::equal_to<>>;
  // Entries of the map do not move. nullopt: the entry is new.
  using Change = std::pair<const Owners::value_type*, std::optional<Owner>>;
  using Indices = std::unordered_map<std::string, uint32_t, TextHash, std::equal_to<>>;

  uint32_t NameOf(std::string_view name);
  void Set(const std::string& slot, Owner owner);

  Owners owners_;                   // by container, field and key (field_ledger.cc)
  std::vector<Change> undo_;        // newest last
  std::vector<std::string> names_;  // of plugins, or combinations of several
  Indices name_indices_;
  std::vector<std::string> containers_;
  Indices container_indices_;
};

}  // namespace resmgr::nri
