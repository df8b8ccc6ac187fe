// SPDX-License-Identifier: Apache-2.0
// The order of the modules (pkg/ARCHITECTURE.md), read from the #include lines themselves.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using testing::IsEmpty;
namespace fs = std::filesystem;

// A module may include those of lower layers. "policies/*" and "cmd/*" stand for each
// folder there that is not named itself.
// The numbers are those of pkg/ARCHITECTURE.md, which tells what each module is.
const std::map<std::string, int>& Layers() {
  static const auto* const kLayers = new std::map<std::string, int>{
      {"pkg/base", 0},  // includes no other module
      {"pkg/sys", 1},       {"pkg/cmdline", 1}, {"pkg/log", 1},
      {"pkg/metrics", 1},   {"pkg/api", 1},     {"pkg/topology", 2},
      {"pkg/kube", 2},      {"pkg/config", 2},  {"pkg/h2", 2},
      {"pkg/grpc", 2},      {"pkg/ttrpc", 2},   {"pkg/model", 3},
      {"pkg/allocator", 4}, {"pkg/policy", 4},  {"pkg/claims", 4},
      {"pkg/state", 4},     {"pkg/dump", 4},    {"policies/exclusive", 5},
      {"policies/*", 5},    {"pkg/resmgr", 5},  {"pkg/audit", 6},
      {"pkg/classes", 6},   {"pkg/usage", 6},   {"pkg/schedview", 6},
      {"pkg/pipeline", 6},  {"pkg/runtime", 6}, {"pkg/cri", 7},
      {"pkg/cpufile", 7},   {"pkg/nri", 7},     {"pkg/hooks", 7},
      {"pkg/docker", 7},    {"pkg/kubelet", 7}, {"pkg/dra", 7},
      {"pkg/node", 8},      {"pkg/admin", 8},   {"pkg/page", 8},
      {"pkg/simulator", 8}, {"agent", 8},       {"webhook", 8},
      {"cmd/*", 9},
  };
  return *kLayers;
}

// The only includes within a layer; they form no circle.
const std::set<std::pair<std::string, std::string>>& AllowedInLayer() {
  static const auto* const kAllowed = new std::set<std::pair<std::string, std::string>>{
      {"pkg/config", "pkg/topology"},  {"pkg/config", "pkg/kube"},
      {"pkg/log", "pkg/sys"},          {"pkg/api", "pkg/log"},
      {"pkg/metrics", "pkg/sys"},      {"pkg/grpc", "pkg/h2"},
      {"pkg/admin", "pkg/node"},       {"pkg/page", "pkg/node"},
      {"pkg/page", "pkg/admin"},       {"policies/*", "policies/exclusive"},
      {"pkg/runtime", "pkg/pipeline"}, {"pkg/classes", "pkg/pipeline"},
      {"pkg/claims", "pkg/policy"},    {"pkg/state", "pkg/claims"},
      {"pkg/claims", "pkg/allocator"},
  };
  return *kAllowed;
}

// Third-party headers that have one wrapper, and the modules that are it.
struct Wrapper {
  std::string_view header_prefix;
  std::set<std::string, std::less<>> modules;
};

const std::vector<Wrapper>& Wrappers() {
  static const auto* const kWrappers = new std::vector<Wrapper>{
      {"hwloc", {"pkg/topology"}},      {"yaml-cpp/", {"pkg/config"}},
      {"nghttp2/", {"pkg/h2"}},         {"grpc", {}},
      {"prometheus/", {"pkg/metrics"}}, {"spdlog/", {"pkg/log"}},
  };
  return *kWrappers;
}

// Modules that must not use messages of a wire format.
const std::set<std::string, std::less<>>& WithoutProtobuf() {
  static const auto* const kModules = new std::set<std::string, std::less<>>{
      "pkg/base",           "pkg/sys",       "pkg/log",     "pkg/metrics", "pkg/topology",
      "pkg/config",         "pkg/kube",      "pkg/h2",      "pkg/grpc",    "pkg/model",
      "pkg/policy",         "pkg/allocator", "pkg/resmgr",  "policies/*",  "pkg/pipeline",
      "policies/exclusive", "pkg/ttrpc",     "pkg/cmdline", "pkg/runtime", "pkg/classes",
      "pkg/claims",
  };
  return *kModules;
}

struct Include {
  std::string file;  // in quotes or angle brackets
  bool system = false;
};

bool IsMadeForTests(const std::string& path) {
  return path.find("/testing/") != std::string::npos || path.ends_with("_fixture.h");
}

struct Source {
  std::string path;    // from the root of the tree
  std::string folder;  // "policies/static"
  std::string module;  // the key of Layers(): "policies/*"
  std::vector<std::string> lines;
  std::vector<Include> includes;

  // Tests, and code for them in folders `testing`, may use any other library, and test/support.
  bool IsTest() const { return path.ends_with("_test.cc") || IsMadeForTests(path); }
};

fs::path Root() {
  return RESMGR_SOURCE_DIR;
}

// "pkg/base" of "pkg/base/status.h"; "agent" of "agent/main.cc"; "" for a file outside of modules.
std::string FolderOf(const std::string& path) {
  const size_t first = path.find('/');
  std::string top = path.substr(0, first);
  if (top == "agent" || top == "webhook") return top;
  if (top != "pkg" && top != "policies" && top != "cmd") return "";
  return path.substr(0, path.find('/', first + 1));
}

std::string ModuleOf(const std::string& folder) {
  if (Layers().contains(folder)) return folder;
  if (folder.starts_with("policies/")) return "policies/*";
  if (folder.starts_with("cmd/")) return "cmd/*";
  return folder;
}

Source ReadSource(const fs::path& file) {
  static const auto* const kInclude = new std::regex(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])");
  Source source;
  source.path = file.lexically_relative(Root()).generic_string();
  source.folder = FolderOf(source.path);
  source.module = ModuleOf(source.folder);
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line); source.lines.push_back(line)) {
    std::smatch match;
    if (std::regex_search(line, match, *kInclude)) {
      source.includes.push_back({match[2].str(), match[1] == "<"});
    }
  }
  return source;
}

const std::vector<Source>& Sources() {
  static const auto* const kSources = [] {
    auto* sources = new std::vector<Source>;
    for (const char* top : {"cmd", "pkg", "policies", "agent", "webhook"}) {
      if (!fs::exists(Root() / top)) continue;
      // The folders may be links to a tree elsewhere.
      const auto options = fs::directory_options::follow_directory_symlink;
      for (const auto& entry : fs::recursive_directory_iterator(Root() / top, options)) {
        const std::string extension = entry.path().extension();
        if (extension == ".h" || extension == ".cc") sources->push_back(ReadSource(entry.path()));
      }
    }
    return sources;
  }();
  return *kSources;
}

std::optional<int> LayerOf(const std::string& module) {
  const auto found = Layers().find(module);
  if (found == Layers().end()) return std::nullopt;
  return found->second;
}

bool MayInclude(const Source& source, const std::string& folder) {
  const std::string module = ModuleOf(folder);
  if (folder == source.folder) return true;
  if (AllowedInLayer().contains({source.module, module})) return true;
  const auto from = LayerOf(source.module);
  const auto to = LayerOf(module);
  return from && to && *to < *from;
}

TEST(LayersTest, FindsTheSources) {
  EXPECT_GT(Sources().size(), 50u);
}

TEST(LayersTest, KnowsEveryModule) {
  std::set<std::string> unknown;
  for (const Source& source : Sources()) {
    if (!LayerOf(source.module)) unknown.insert(source.folder);
  }
  EXPECT_THAT(unknown, IsEmpty()) << "every module needs a place in Layers()";
}

// The rows of its table of modules: "| 4 | `pkg/policy` | what it is |".
TEST(LayersTest, ArchitectureHasEveryModuleInItsLayer) {
  static const std::regex kRow(R"(^\| (\d) \| (`[^|]*`) \|)");
  static const std::regex kName(R"(`([^`]+)`)");
  std::map<std::string, int> described;
  std::ifstream stream(Root() / "pkg/ARCHITECTURE.md");
  for (std::string line; std::getline(stream, line);) {
    std::smatch row;
    if (!std::regex_search(line, row, kRow)) continue;
    const std::string names = row[2];
    for (std::sregex_iterator name(names.begin(), names.end(), kName), end; name != end; ++name)
      described[(*name)[1]] = std::stoi(row[1]);
  }
  std::map<std::string, int> present;
  for (const Source& source : Sources())
    present[source.module] = LayerOf(source.module).value_or(-1);
  EXPECT_EQ(described, present);
}

TEST(LayersTest, ModulesIncludeOnlyLowerOnes) {
  std::vector<std::string> wrong;
  for (const Source& source : Sources()) {
    for (const Include& include : source.includes) {
      const std::string folder = FolderOf(include.file);
      if (include.system || folder.empty() || MayInclude(source, folder)) continue;
      wrong.push_back(source.path + " includes " + include.file);
    }
  }
  EXPECT_THAT(wrong, IsEmpty());
}

// The folders of pkg/nri/host: those that each may include.
TEST(LayersTest, FoldersOfTheNriHostIncludeOnlyLowerOnes) {
  static const std::regex kFolder(R"(^pkg/nri/host/(\w+)/)");
  const std::map<std::string, std::set<std::string>> lower{
      {"session", {}},
      {"merge", {}},
      {"mapping", {"merge"}},
      {"view", {"session", "merge"}},
      {"stage", {"session", "merge", "mapping", "view"}},
  };
  std::vector<std::string> wrong;
  size_t sources = 0;
  for (const Source& source : Sources()) {
    std::smatch from;
    if (!std::regex_search(source.path, from, kFolder)) continue;
    ++sources;
    ASSERT_TRUE(lower.contains(from[1])) << source.path;
    for (const Include& include : source.includes) {
      std::smatch to;
      if (source.IsTest() || !std::regex_search(include.file, to, kFolder) || to[1] == from[1])
        continue;
      if (!lower.at(from[1]).contains(to[1]))
        wrong.push_back(source.path + " includes " + include.file);
    }
  }
  EXPECT_GT(sources, 60u);
  EXPECT_THAT(wrong, IsEmpty());
}

// Two types of one name in a namespace are one to the linker, which takes either's functions for
// both: compilers do not see it, and a program that has both breaks.
TEST(LayersTest, NoTypeHasTheNameOfAnother) {
  static const std::regex kNamespace(R"(^namespace ([\w:]+) \{)");
  static const std::regex kDefinition(R"(^(?:struct|class) (\w+)(?: final)?(?: \{| : |$))");
  std::map<std::string, std::set<std::string>> files;  // by the type's full name
  for (const Source& source : Sources()) {
    if (!source.path.ends_with(".h")) continue;
    std::string name_space;
    for (const std::string& line : source.lines) {
      std::smatch match;
      if (std::regex_search(line, match, kNamespace)) name_space = match[1];
      if (std::regex_search(line, match, kDefinition))
        files[name_space + "::" + match[1].str()].insert(source.path);
    }
  }
  EXPECT_GT(files.size(), 150u);
  std::erase_if(files, [](const auto& type) { return type.second.size() == 1; });
  EXPECT_THAT(files, IsEmpty());
}

TEST(LayersTest, EdgesWithinALayerMakeNoCycle) {
  // Repeatedly removes modules that include no remaining one.
  auto edges = AllowedInLayer();
  while (true) {
    std::set<std::string> including;
    for (const auto& [from, to] : edges)
      including.insert(from);
    const size_t before = edges.size();
    std::erase_if(edges, [&](const auto& edge) { return !including.contains(edge.second); });
    if (edges.size() == before) break;
  }
  EXPECT_THAT(edges, IsEmpty());
}

TEST(LayersTest, OnlyTestsIncludeTestSupport) {
  std::vector<std::string> wrong;
  for (const Source& source : Sources()) {
    for (const Include& include : source.includes) {
      if (source.IsTest()) continue;
      if (include.system) continue;
      if (include.file.starts_with("test/") || IsMadeForTests(include.file)) {
        wrong.push_back(source.path + " includes " + include.file);
      }
    }
  }
  EXPECT_THAT(wrong, IsEmpty());
}

TEST(LayersTest, ThirdPartyLibrariesStayInTheirWrapper) {
  std::vector<std::string> wrong;
  for (const Source& source : Sources()) {
    if (source.IsTest()) continue;
    for (const Include& include : source.includes) {
      for (const Wrapper& wrapper : Wrappers()) {
        if (include.system && include.file.starts_with(wrapper.header_prefix) &&
            !wrapper.modules.contains(source.module)) {
          wrong.push_back(source.path + " includes " + include.file);
        }
      }
    }
  }
  EXPECT_THAT(wrong, IsEmpty());
}

TEST(LayersTest, PureModulesKnowNoProtobuf) {
  std::vector<std::string> wrong;
  for (const Source& source : Sources()) {
    if (source.IsTest() || !WithoutProtobuf().contains(source.module)) continue;
    for (const Include& include : source.includes) {
      if (include.file.ends_with(".pb.h") || include.file.starts_with("google/protobuf")) {
        wrong.push_back(source.path + " includes " + include.file);
      }
    }
  }
  EXPECT_THAT(wrong, IsEmpty());
}

// This way the compiler proves that the header is self-contained.
TEST(LayersTest, SourcesIncludeTheirOwnHeaderFirst) {
  std::vector<std::string> wrong;
  for (const Source& source : Sources()) {
    if (!source.path.ends_with(".cc")) continue;
    const std::string header = source.path.substr(0, source.path.size() - 2) + "h";
    if (!fs::exists(Root() / header)) continue;
    if (source.includes.empty() || source.includes[0].file != header) wrong.push_back(source.path);
  }
  EXPECT_THAT(wrong, IsEmpty());
}

TEST(LayersTest, EveryFileBeginsAsAllDo) {
  std::vector<std::string> wrong;
  for (const Source& source : Sources()) {
    const bool license =
        !source.lines.empty() && source.lines[0] == "// SPDX-License-Identifier: Apache-2.0";
    const bool once = !source.path.ends_with(".h") ||
                      (source.lines.size() > 1 && source.lines[1] == "#pragma once");
    if (!license || !once) wrong.push_back(source.path);
  }
  EXPECT_THAT(wrong, IsEmpty());
}

// Where bytes are read as something else, sanitizers have to check addresses.
TEST(LayersTest, OnlyModulesThatSaySoReadBytesAsSomethingElse) {
  const std::regex cast(R"(reinterpret_cast<(const )?(\w+)[*&]*>)");
  const std::set<std::string, std::less<>> bytes = {"Bytef", "char", "uint8_t"};
  for (const Source& source : Sources()) {
    if (source.IsTest() || IsMadeForTests(source.path)) continue;
    std::ifstream stream(Root() / source.folder / "CMakeLists.txt");
    const std::string build(std::istreambuf_iterator<char>(stream), {});
    if (build.find("CASTS") != std::string::npos) continue;
    for (const std::string& line : source.lines) {
      if (line.find("reinterpret_cast") == std::string::npos) continue;
      std::smatch match;
      EXPECT_FALSE(std::regex_search(line, match, cast) && !bytes.contains(match[2].str()))
          << source.path << " needs CASTS in its CMakeLists.txt: " << line;
    }
  }
}

// A header that includes itself by way of others compiles by luck, since it is read once.
TEST(LayersTest, HeadersIncludeEachOtherInNoCircle) {
  std::map<std::string, std::set<std::string>> left;
  for (const Source& source : Sources()) {
    if (!source.path.ends_with(".h")) continue;
    std::set<std::string>& headers = left[source.path];
    for (const Include& include : source.includes)
      if (!include.system && include.file.ends_with(".h")) headers.insert(include.file);
  }
  for (auto& [header, includes] : left)
    std::erase_if(includes, [&left](const std::string& file) { return !left.contains(file); });
  // Repeatedly removes headers that include no remaining one.
  while (std::erase_if(left, [](const auto& entry) { return entry.second.empty(); }) > 0) {
    for (auto& [header, includes] : left)
      std::erase_if(includes, [&left](const std::string& file) { return !left.contains(file); });
  }
  EXPECT_THAT(left, IsEmpty());
}

// A container's state follows the transitions of its life, so nothing else may write it.
TEST(LayersTest, OnlyTheLifecycleWritesAContainersState) {
  const std::regex write(R"(container(\.|->)state = |\.life = )");
  for (const Source& source : Sources()) {
    if (source.folder != "pkg/resmgr" || source.IsTest()) continue;
    if (source.path == "pkg/resmgr/lifecycle.cc") continue;
    for (const std::string& line : source.lines)
      EXPECT_FALSE(std::regex_search(line, write)) << source.path << ": " << line;
  }
}

}  // namespace
}  // namespace resmgr
