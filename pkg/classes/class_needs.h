// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace resmgr {

// A class that a pod's annotations ask for. A value.
struct AskedClass {
  std::string_view kind{};  // as ClassPart::kind
  std::string name{};
  std::string source{};  // the annotations

  friend bool operator==(const AskedClass&, const AskedClass&) = default;
};

// The support of the machine that a kind of classes lacks. A value.
struct AbsentKind {
  std::string reason{};
  std::vector<std::string> but{};  // the classes of this kind that it can have all the same
};

using AbsentKinds = std::map<std::string, AbsentKind, std::less<>>;

}  // namespace resmgr
