// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/model/container.h"
#include "pkg/model/pod.h"
#include "pkg/policy/pinning.h"
#include "policies/balloons/balloon_book.h"

namespace resmgr {

// Reads the options and annotations about one container, before any balloon is looked at. Refers to
// the setup, which must outlive it.
class BalloonRules {
 public:
  BalloonRules(const BalloonSetup& setup, const PinningRule& pinning)
      : setup_(setup), pinning_(pinning) {}

  // Why the container is in no balloon; empty if it is in one.
  std::string WhyInNone(const Pod& pod, const Container& container) const;
  // The container as a member of a balloon of its type, with a text about why it has this type.
  // InvalidArgument if its annotation names no type, or a type that takes no containers.
  StatusOr<BalloonMember> MemberFor(const Pod& pod, const Container& container) const;
  // InvalidArgument if an annotation asks for something that no balloon can give.
  Status CheckAsked(const Pod& pod, const Container& container) const;
  // As MemberFor, for a running container: if that fails, the container is of the default type.
  BalloonMember RunningMember(const Pod& pod, const Container& container) const;
  // One sentence for each annotation that has no effect because only other namespaces may use it.
  std::vector<std::string> Unheeded(const Pod& pod, const Container& container) const;

 private:
  // The type of this name that the configuration has; -1: none.
  int FindType(std::string_view name) const;
  // The names of the first types, for error messages.
  std::string KnownTypes() const;
  StatusOr<int> TypeOf(const Pod& pod, const Container& container, std::string& why) const;
  BalloonMember MemberOfType(const Pod& pod, const Container& container, int type,
                             std::string why) const;
  int64_t DemandOf(const Requirements& requirements, const BalloonType& type) const;

  const BalloonSetup& setup_;
  const PinningRule& pinning_;
};

// Checks a text of groupBy. ${KEY}, or $KEY up to the next $ or the end, is replaced by the
// container's value for the key, and $$ by $. InvalidArgument if a } is missing, or if no container
// can have the key.
Status CheckGroup(std::string_view text);

}  // namespace resmgr
