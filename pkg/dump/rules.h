// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/status.h"

namespace re2 {
class RE2;
}  // namespace re2

namespace resmgr::dump {

// How much is written about a call.
enum class Target {
  kOff,    // nothing
  kName,   // one line at its end
  kFull,   // request, replies and failure with their contents
  kCount,  // number of calls, once per period
};

// The rules of `-dump`: which methods are dumped, and how much of each call. Syntax and lookup are
// those of CRI Resource Manager's first release, on which users' scripts rely (README.md here).
//
// Immutable once built; copies are cheap enough for a change of configuration.
class Rules {
 public:
  // These rules precede all rules of the user.
  static constexpr std::string_view kBuiltIn =
      "full:.*,off:Version,.*List.*,.*Status.*,.*Info.*,.*Log.*,.*Reopen.*";

  // Parses the built-in rules, then those of each specification in turn. A target applies to the
  // items that follow it within its own specification only. kInvalidArgument quotes the malformed
  // item.
  static StatusOr<Rules> Parse(const std::vector<std::string>& specs);

  // Returns the target of `method`, the last element of the gRPC path. An exact rule wins, then
  // `*`, then the last regular expression that matches anywhere in the method; kOff if there is no
  // match.
  Target Lookup(std::string_view method) const;

  // The path of `record:FILE`; empty if there is none.
  const std::string& record_file() const { return record_file_; }
  // Whether the specifications have rules for the dump itself, and not only for the recording.
  bool customized() const { return customized_; }

 private:
  Status Add(std::string_view spec);
  Status AddItem(std::string_view item, Target& sticky);
  Status AddRule(Target target, std::string_view method);
  Status SetRecordFile(std::string_view file);

  std::map<std::string, Target, std::less<>> exact_;
  std::vector<std::pair<std::shared_ptr<const re2::RE2>, Target>> patterns_;
  std::string record_file_;
  bool customized_ = false;
};

}  // namespace resmgr::dump
