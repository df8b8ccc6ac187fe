// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config_node.h"
#include "pkg/config/problems.h"

namespace resmgr {

// Reads one map of a configuration strictly: every key must be known and its value of the right
// type and in range. Modules and policies read their sections with it:
//
//   MapReader reader(section, "policy.static");
//   reader.Map("Options", [&](MapReader& options) {
//     options.Bool("full-pcpus-only", config.full_pcpus_only);
//   });
//   return reader.Finish();
//
// Keys match without regard to case; messages show the path in the spelling given here. An absent,
// null or invalid value leaves its target unchanged. All errors are collected; a null node is an
// empty map. The node must outlive the reader. Thread-compatible.
//
// The reader's calls also describe the options: `complete` gets each option with its resulting
// value, the node's or the default. (Values of Parse, List with a parser and Node are known only to
// their caller, and are left out.)
class MapReader {
 public:
  // Take a value; `origin` is "FILE:LINE: path", for later messages. An error's message is appended
  // to that.
  using TextParser = std::function<Status(std::string_view text, const std::string& origin)>;
  using ListParser =
      std::function<Status(const std::vector<std::string>& texts, const std::string& origin)>;

  MapReader(const ConfigNode& node, std::string_view path, ConfigNode* complete = nullptr);

  void Bool(std::string_view key, bool& target);
  // An integer within [min, max].
  void Int(std::string_view key, int64_t min, int64_t max, int64_t& target);
  // A duration in Kubernetes' form ("90s", "500ms"), within [min, max].
  void Duration(std::string_view key, std::chrono::milliseconds min, std::chrono::milliseconds max,
                std::chrono::milliseconds& target);
  void Text(std::string_view key, std::string& target);
  // A single value with its own syntax.
  void Parse(std::string_view key, const TextParser& parse);
  // One of `choices`, in that spelling.
  void Choice(std::string_view key, const std::vector<std::string_view>& choices,
              std::string& target);
  // A list of single values, or a single value alone.
  void List(std::string_view key, std::vector<std::string>& target);
  void List(std::string_view key, const ListParser& parse);
  void Map(std::string_view key, const std::function<void(MapReader&)>& read);
  // A map of maps, whose keys are names chosen by the user, case-sensitive. An error that `read`
  // returns concerns the name; the entry's own keys are not checked then.
  void Each(std::string_view key,
            const std::function<Status(std::string_view name, MapReader& entry)>& read);
  // The same for this map itself.
  void EachEntry(const std::function<Status(std::string_view name, MapReader& entry)>& read);
  // The same for a map of single values.
  void EachText(std::string_view key,
                const std::function<Status(std::string_view name, std::string_view text)>& parse);
  // The unparsed value; nullptr if the key is absent.
  const ConfigNode* Node(std::string_view key);

  // Records an error about a key's value.
  void Fail(const ConfigNode& value, std::string_view key, std::string_view message);

  // Called after the last key: returns all errors, one per line (problems.h), including unknown
  // keys.
  Status Finish();

 private:
  // nullptr if the key is absent, null, or of another kind, which is recorded as an error.
  const ConfigNode* Find(std::string_view key, ConfigNode::Kind kind);
  std::string PathOf(std::string_view key) const;
  std::string Origin(const ConfigNode& value, std::string_view key) const;

  const ConfigNode& node_;
  std::string path_;
  // Passes an option to `complete`.
  void Tell(std::string_view key, ConfigNode value);

  std::vector<std::string> known_;
  ConfigNode* complete_;
  Problems problems_;
};

}  // namespace resmgr
