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

// Reads one map of a configuration strictly: every key must be known, of the right type and
// possible. Modules and policies read their sections with it:
//
//   MapReader reader(section, "policy.static");
//   reader.Map("Options", [&](MapReader& options) {
//     options.Bool("full-pcpus-only", config.full_pcpus_only);
//   });
//   return reader.Finish();
//
// Keys match without regard to case; messages show the path in the spelling given here. A key that
// is absent, null or wrong leaves its target as it is. All errors are collected; a null node is an
// empty map. The node must outlive the reader. Thread-compatible.
//
// What a reader takes is also what there is: with `complete` it tells each option with the value
// that it has then, be it the node's or the default. (Parse, List with a parser and Node take what
// only their caller understands, and are not among them.)
class MapReader {
 public:
  // Take a value; `origin` is "FILE:LINE: path", for messages that are made later. The message of
  // an error is put behind that.
  using TextParser = std::function<Status(std::string_view text, const std::string& origin)>;
  using ListParser =
      std::function<Status(const std::vector<std::string>& texts, const std::string& origin)>;

  MapReader(const ConfigNode& node, std::string_view path, ConfigNode* complete = nullptr);

  void Bool(std::string_view key, bool& target);
  // Within [min, max].
  void Int(std::string_view key, int64_t min, int64_t max, int64_t& target);
  // As Kubernetes writes it ("90s", "500ms"), within [min, max].
  void Duration(std::string_view key, std::chrono::milliseconds min, std::chrono::milliseconds max,
                std::chrono::milliseconds& target);
  void Text(std::string_view key, std::string& target);
  // A single value with a syntax of its own.
  void Parse(std::string_view key, const TextParser& parse);
  // One of `choices`, in that spelling.
  void Choice(std::string_view key, const std::vector<std::string_view>& choices,
              std::string& target);
  // A list of single values, or one alone.
  void List(std::string_view key, std::vector<std::string>& target);
  void List(std::string_view key, const ListParser& parse);
  void Map(std::string_view key, const std::function<void(MapReader&)>& read);
  // A map of maps, whose keys are names that the user chooses, with regard to case. An error that
  // `read` returns is about the name; the entry's own keys are then not looked at.
  void Each(std::string_view key,
            const std::function<Status(std::string_view name, MapReader& entry)>& read);
  // The same of this map itself.
  void EachEntry(const std::function<Status(std::string_view name, MapReader& entry)>& read);
  // Likewise, of single values.
  void EachText(std::string_view key,
                const std::function<Status(std::string_view name, std::string_view text)>& parse);
  // The value as it stands; nullptr when the key is absent.
  const ConfigNode* Node(std::string_view key);

  // Records an error about a key's value.
  void Fail(const ConfigNode& value, std::string_view key, std::string_view message);

  // After the last key: all errors, one per line (problems.h), those of unknown keys among them.
  Status Finish();

 private:
  // nullptr when the key is absent, null, or of another kind; the latter is recorded.
  const ConfigNode* Find(std::string_view key, ConfigNode::Kind kind);
  std::string PathOf(std::string_view key) const;
  std::string Origin(const ConfigNode& value, std::string_view key) const;

  const ConfigNode& node_;
  std::string path_;
  // An option that there is, for `complete`.
  void Tell(std::string_view key, ConfigNode value);

  std::vector<std::string> known_;
  ConfigNode* complete_;
  Problems problems_;
};

}  // namespace resmgr
