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

// A change of a container's request and the stage, or its plugin, that made it.
struct FieldOwner {
  FieldChange change;
  std::string stage;
  std::string plugin{};
  std::string value{};  // see ShownValue

  friend bool operator==(const FieldOwner&, const FieldOwner&) = default;
};

// The printable value of a change of resources, block I/O and RDT classes or the cgroup parent; ""
// for other fields: environment variables, labels, annotations and arguments may be secrets, and
// some values are long.
std::string ShownValue(const Adjustment& adjustment, const FieldChange& change);

// Whether two plugin names belong to one program, ignoring index and ending: "koordlet.json", a
// hook server's file, and "00-koordlet_nri", an NRI plugin.
bool LookLikeOneProgram(std::string_view a, std::string_view b);

// The stage that changed each field of each container, for `explain`. Changes by the stage that
// owns the placement are not stored: a field without an owner here is that stage's. Bounded: with
// more than kMostContainers the oldest is forgotten, and a container keeps kMostOwners. Does not
// outlive the process. Loop's thread only.
class FieldOwners {
 public:
  static constexpr size_t kMostContainers = 4096;
  static constexpr size_t kMostOwners = 256;
  static constexpr size_t kMostLeftOut = 16;

  // Adds changes that the runtime has carried out. A later change of the same field of the
  // container, also by a file of cgroup v2, replaces a former one. The id may be the beginning of a
  // known one.
  void Add(std::string_view id, std::vector<FieldOwner> owners);
  // Adds lines about changes that plugins wanted and the container did not get, at most
  // kMostLeftOut.
  void AddLeftOut(std::string_view id, std::vector<std::string> lines);
  void Forget(std::string_view id);

  // Empty for an unknown container. Valid until the next change.
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
  std::list<std::string_view> order_;  // the ids of the map, oldest first
};

}  // namespace resmgr
