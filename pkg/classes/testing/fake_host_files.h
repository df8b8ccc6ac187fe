// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/classes/host_files.h"

namespace resmgr::test {

// A host in memory, which refuses writes and dies as the test says. Thread-compatible.
class FakeHostFiles final : public HostFiles {
 public:
  // Thrown in place of an operation of a process that was killed.
  struct Killed {};

  std::map<std::string, std::string> tree;
  // Error numbers of the writes of a path.
  std::map<std::string, int> refuses;
  std::set<std::string> unreadable;
  // The kernel's rules: the error number of a write; 0: it is taken.
  std::function<int(const std::string& path, std::string_view text)> rules;
  // The text that a file has after a write; by default the written one.
  std::function<std::string(std::string_view path, std::string_view text)> keeps;
  // Before each write.
  std::function<void(const std::string& path, std::string_view text)> on_write;
  // Adds the files of a directory that was made.
  std::function<void(const std::string& directory)> on_make;
  std::vector<std::string> written;  // "PATH TEXT"
  // Operations until the process is killed; less than 0: never.
  int lives_for = -1;

  StatusOr<std::string> Read(const std::string& path) override {
    Live();
    if (IsDirectoryPath(path)) {
      const std::string directory = path.substr(0, path.size() - 2);
      if (Has(directory)) return std::string(kThere);
      if (Has(directory.substr(0, directory.rfind('/')))) return std::string();
    }
    const auto file = tree.find(path);
    if (file == tree.end()) return NotFound("there is no {}", path);
    if (unreadable.contains(path)) return Unavailable("cannot read {}", path);
    return file->second;
  }
  int Write(const std::string& path, std::string_view text) override {
    Live();
    if (on_write) on_write(path, text);
    const auto file = tree.find(path);
    if (file == tree.end() && !IsDirectoryPath(path)) return ENOENT;
    written.push_back(fmt::format("{} {}", path, text));
    const auto refused = refuses.find(path);
    if (refused != refuses.end() && refused->second != 0) return refused->second;
    if (IsDirectoryPath(path)) return MakeOrRemove(path.substr(0, path.size() - 2), text);
    if (const int error = rules ? rules(path, text) : 0; error != 0) return error;
    file->second = keeps ? keeps(path, text) : std::string(text);
    return 0;
  }
  std::vector<std::string> List(const std::string& directory) override {
    Live();
    std::vector<std::string> names;
    const std::string below = directory + "/";
    for (auto file = tree.lower_bound(below); file != tree.end(); ++file) {
      if (!file->first.starts_with(below)) break;
      std::string name = file->first.substr(below.size());
      name = name.substr(0, name.find('/'));
      if (names.empty() || names.back() != name) names.push_back(name);
    }
    return names;
  }

 private:
  bool Has(const std::string& directory) const {
    const auto first = tree.lower_bound(directory + "/");
    return first != tree.end() && first->first.starts_with(directory + "/");
  }
  int MakeOrRemove(const std::string& directory, std::string_view text) {
    if (text.find_first_not_of('\n') == std::string_view::npos) {
      std::erase_if(tree,
                    [&](const auto& file) { return file.first.starts_with(directory + "/"); });
    } else if (on_make) {
      on_make(directory);
    }
    return 0;
  }
  void Live() {
    if (lives_for == 0) throw Killed();
    if (lives_for > 0) --lives_for;
  }
};

}  // namespace resmgr::test
