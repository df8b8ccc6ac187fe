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

// Which of several runtimes gave an id. Runtimes make random ids of 64 digits, so no two give the
// same one, and the ids that clients see are those of the runtimes. Loop's thread only.
class IdOwners {
 public:
  // A pod's uid is the kubelet's; its pod sandboxes are all at one runtime.
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

  void Add(Kind kind, std::string_view id, Owner owner);
  void Remove(Kind kind, std::string_view id);
  ListBegin BeginList() { return {++time_}; }
  // All ids that this runtime has: forgets those that are older than the list and not in it.
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
  const Ids& Table(Kind kind) const { return tables_.at(static_cast<size_t>(kind)); }

  std::array<Ids, 3> tables_;
  std::set<std::pair<Kind, Owner>> listed_;
  uint64_t time_ = 0;
};

}  // namespace resmgr
