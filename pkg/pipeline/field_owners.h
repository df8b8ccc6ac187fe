// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/ids.h"
#include "pkg/model/adjustment.h"

namespace resmgr {

// A change of a container's request and the stage that made it, or its plugin.
struct FieldOwner {
  FieldChange change;
  std::string stage;
  std::string plugin{};
  std::string value{};  // ShownValue

  friend bool operator==(const FieldOwner&, const FieldOwner&) = default;
};

// The value of a change, for people: of resources, block I/O and RDT classes and the cgroup parent.
// Environment variables, labels, annotations and arguments may be secrets; of these, and of what
// has no short value, it is "".
std::string ShownValue(const Adjustment& adjustment, const FieldChange& change);

// Whether two names of plugins are those of one program, without the index and the ending that
// names have: "koordlet.json", a hook server's file, and "00-koordlet_nri", an NRI plugin.
bool LookLikeOneProgram(std::string_view a, std::string_view b);

// Which stage changed which field of which container, for `explain`. What the stage that owns the
// placement sets is not in it: that is what no other stage owns. Bounded: beyond kMostContainers
// the one known for longest is forgotten, and of a container kMostOwners are kept. Does not
// outlive the process. Loop's thread only.
class FieldOwners {
 public:
  static constexpr size_t kMostContainers = 4096;
  static constexpr size_t kMostOwners = 256;
  static constexpr size_t kMostLeftOut = 16;

  // The runtime has carried the changes out. A later change of the same field of the container,
  // also by a file of cgroup v2, replaces it. The id may be the beginning of one that is known.
  void Add(std::string_view id, std::vector<FieldOwner> owners);
  // What plugins wanted of the container and it did not get: a line for each, kMostLeftOut at most.
  void AddLeftOut(std::string_view id, std::vector<std::string> lines);
  void Forget(std::string_view id);

  // Empty for a container of which nothing is known. Valid until the next change.
  const std::vector<FieldOwner>& Of(const ContainerId& id) const;
  const std::vector<std::string>& LeftOutOf(const ContainerId& id) const;
  bool empty() const { return owners_.empty(); }

 private:
  struct Known {
    std::vector<FieldOwner> owners;
    std::vector<std::string> left_out;
    std::list<std::string_view>::iterator place{};  // in order_
  };
  using Containers = std::map<std::string, Known, std::less<>>;

  Containers::iterator Find(std::string_view id);
  Known& At(std::string_view id);

  Containers owners_;
  std::list<std::string_view> order_;  // the same ids, the one known for longest first
};

}  // namespace resmgr
