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

// What is written about a call.
enum class Target {
  kOff,    // nothing
  kName,   // one line when it ended
  kFull,   // request, replies and failure with their contents
  kCount,  // how often it was called, once per period
};

std::string_view ToString(Target target);

// Which methods are dumped how: the rules that `-dump` builds up. The syntax and the lookup are
// those of CRI Resource Manager's first release, on which users' scripts rely (README.md here).
//
// Immutable once built; copies are cheap enough for a change of configuration.
class Rules {
 public:
  // In force before anything that the user says.
  static constexpr std::string_view kBuiltIn =
      "full:.*,off:Version,.*List.*,.*Status.*,.*Info.*,.*Log.*,.*Reopen.*";

  // The built-in rules, then those of each specification in turn. A target holds for the items that
  // follow it within its own specification only. InvalidArgument quotes the item that is wrong.
  static StatusOr<Rules> Parse(const std::vector<std::string>& specs);

  // `method` is the last element of the gRPC path. An exact rule wins, then `*`, then the last
  // regular expression that matches anywhere in it; kOff when there is none.
  Target Lookup(std::string_view method) const;

  // Where `record:FILE` wants the recording; empty when there is none.
  const std::string& record_file() const { return record_file_; }
  // The specifications say something about the dump itself, not only about the recording.
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
