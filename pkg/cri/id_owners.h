// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/status.h"

namespace resmgr {

// Remembers which of several runtimes has an id. Runtimes make random ids of 64 digits, and clients
// see them unchanged. Two runtimes have the same id only if they are one runtime under two names,
// or if one has a copy of the other's directory. Then the first claim counts until its runtime
// removes the object, or sends a complete list without it. Loop's thread only.
class IdOwners {
 public:
  // The kubelet chooses a pod's uid. All pod sandboxes of a pod are at one runtime, unless its
  // handler is moved to another runtime: then the runtime of the last sandbox counts.
  enum class Kind { kPodSandbox, kContainer, kPodUid };
  // The position of a runtime in the caller's list of them.
  using Owner = size_t;

  // Limit of remembered ids of one kind, far more than a kubelet allows on a node. Further ones are
  // unknown.
  static constexpr size_t kMostIds = size_t{1} << 16;
  // Bytes; longer ids are not remembered.
  static constexpr size_t kLongestId = 256;

  // The time at which a runtime's list begins. Ids that are learned after it are newer than the
  // list.
  struct ListBegin {
    uint64_t time = 0;
  };

  // Limit of remembered conflicts. Further ones are reported again at each claim.
  static constexpr size_t kMostConflicts = 1024;
  struct Conflict {
    Kind kind;
    std::string_view id;
    Owner owner;
    Owner claimant;
  };
  // `tell` is called once for each conflict, at the first refused claim.
  void OnConflict(std::function<void(const Conflict&)> tell) { tell_ = std::move(tell); }

  // False: another runtime has this id, and keeps it.
  bool Add(Kind kind, std::string_view id, Owner owner);
  // Forgets the id if this runtime has it.
  void Remove(Kind kind, std::string_view id, Owner owner);
  // Whether some runtime has exactly this id.
  bool Knows(Kind kind, std::string_view id) const { return Table(kind).contains(id); }
  // Whether another runtime has exactly this id.
  bool IsOfOther(Kind kind, std::string_view id, Owner owner) const;
  ListBegin BeginList() { return {++time_}; }
  // Takes `ids`, a complete list of this runtime: adds those that no other runtime has, and forgets
  // the runtime's ids that are older than the list and not in it.
  void SetAll(Kind kind, Owner owner, const std::vector<std::string_view>& ids, ListBegin begin);

  // The owner of the id or of all ids that begin with it, since runtimes accept an id's beginning.
  // A uid must be whole. nullopt: unknown. kInvalidArgument: it is the beginning of ids of several
  // runtimes.
  StatusOr<std::optional<Owner>> Find(Kind kind, std::string_view id_or_beginning) const;

  // Whether SetAll has had a complete list of the runtime.
  bool Listed(Kind kind, Owner owner) const { return listed_.contains({kind, owner}); }
  // Whether the runtime is known to have an object of this kind.
  bool Has(Kind kind, Owner owner) const;
  std::vector<std::string_view> IdsOf(Kind kind, Owner owner) const;
  size_t size(Kind kind) const { return Table(kind).size(); }

 private:
  struct Entry {
    Owner owner = 0;
    uint64_t time = 0;
  };
  using Ids = std::map<std::string, Entry, std::less<>>;

  Ids& Table(Kind kind) { return tables_.at(static_cast<size_t>(kind)); }
  void NoteConflict(const Conflict& conflict);
  void EndConflict(Kind kind, std::string_view id);
  const Ids& Table(Kind kind) const { return tables_.at(static_cast<size_t>(kind)); }

  std::array<Ids, 3> tables_;
  // The runtime that claims another one's id, by kind and id.
  std::map<std::pair<Kind, std::string>, Owner> conflicts_;
  std::function<void(const Conflict&)> tell_;
  std::set<std::pair<Kind, Owner>> listed_;
  uint64_t time_ = 0;
};

}  // namespace resmgr
