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

// Knows which of several runtimes gave an id. Runtimes make random ids of 64 digits, and the ids
// that clients see are those of the runtimes. Two runtimes may claim the same id all the same: they
// are one under two names, or one has a copy of the other's directory. Then the first claim counts
// until its runtime removes what has the id, or lists all that it has without it. Loop's thread
// only.
class IdOwners {
 public:
  // A pod's uid is the kubelet's; its pod sandboxes are all at one runtime, unless the handler is
  // given to another one: the last one counts.
  enum class Kind { kPodSandbox, kContainer, kPodUid };
  // The position of a runtime in the caller's list of them.
  using Owner = size_t;

  // Ids of one kind that are remembered, far beyond what the kubelet lets a node have. Further ones
  // are unknown.
  static constexpr size_t kMostIds = size_t{1} << 16;
  // Longer ones are not remembered.
  static constexpr size_t kLongestId = 256;

  // A list of a runtime that is being made. What is learned while it is made is newer than it.
  struct ListBegin {
    uint64_t time = 0;
  };

  // Conflicts that are remembered. Further ones are told again with each claim.
  static constexpr size_t kMostConflicts = 1024;
  struct Conflict {
    Kind kind;
    std::string_view id;
    Owner owner;
    Owner claimant;
  };
  // Told of each claim that is refused, once until the conflict is over.
  void OnConflict(std::function<void(const Conflict&)> tell) { tell_ = std::move(tell); }

  // False: another runtime has this id, and keeps it.
  bool Add(Kind kind, std::string_view id, Owner owner);
  // Forgets the id if this runtime has it.
  void Remove(Kind kind, std::string_view id, Owner owner);
  // Some runtime has exactly this id.
  bool Knows(Kind kind, std::string_view id) const { return Table(kind).contains(id); }
  // Another runtime has exactly this id.
  bool IsOfOther(Kind kind, std::string_view id, Owner owner) const;
  ListBegin BeginList() { return {++time_}; }
  // `ids` are all that this runtime says it has. Adds those that no other runtime has, and forgets
  // the runtime's ids that are older than the list and not in it.
  void SetAll(Kind kind, Owner owner, const std::vector<std::string_view>& ids, ListBegin begin);

  // The owner of the id or of all ids that begin with it, as runtimes take an id's beginning.
  // A uid has to be whole. nullopt: unknown. InvalidArgument: it is the beginning of ids of several
  // runtimes.
  StatusOr<std::optional<Owner>> Find(Kind kind, std::string_view id_or_beginning) const;

  // Whether all that it had was told once.
  bool Listed(Kind kind, Owner owner) const { return listed_.contains({kind, owner}); }
  // Whether it is known to have any.
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
  // By kind and id: the runtime that claims an id of another one.
  std::map<std::pair<Kind, std::string>, Owner> conflicts_;
  std::function<void(const Conflict&)> tell_;
  std::set<std::pair<Kind, Owner>> listed_;
  uint64_t time_ = 0;
};

}  // namespace resmgr
