// SPDX-License-Identifier: Apache-2.0
// The pages against the programs: each flag, command and annotation is documented, every documented
// flag exists, configurations in the pages are valid, and links have targets.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace resmgr {
namespace {

using testing::ContainerEq;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::SizeIs;
namespace fs = std::filesystem;

const fs::path kSource = RESMGR_SOURCE_DIR;

std::string Read(const fs::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  return {(std::istreambuf_iterator<char>(file)), {}};
}

struct Output {
  std::string text;  // of both streams
  int status = -1;
};

Output Answer(const std::string& program, const std::string& arguments) {
  const std::string command =
      fmt::format("{}/cmd/{}/{} {} 2>&1", RESMGR_BINARY_DIR, program, program, arguments);
  Output output;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> buffer{};
  for (size_t size = 0; (size = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    output.text.append(buffer.data(), size);
  output.status = pclose(pipe);
  return output;
}

// All texts that the one group of a pattern matches.
std::set<std::string> Matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern, std::regex::ECMAScript | std::regex::multiline);
  std::set<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), regex); at != std::sregex_iterator(); ++at)
    found.insert((*at)[1]);
  return found;
}

std::set<std::string> FlagsOf(const std::string& program, const std::string& command = "") {
  return Matches(Answer(program, command + " -help").text, "^  -([a-z0-9-]+)");
}

std::set<std::string> Commands() {
  std::string help = Answer("cri-resmgr-ctl", "-help").text;
  help = help.substr(help.find("Commands:"));
  return Matches(help.substr(0, help.find("\n\n")), "^  ([a-z]+) ");
}

// The section of docs/command-line.md about a program.
std::string CommandLineSection(const std::string& program) {
  const std::string page = Read(kSource / "docs/command-line.md");
  const size_t from = page.find(fmt::format("\n## {}\n", program));
  EXPECT_NE(from, std::string::npos) << program;
  return page.substr(from, page.find("\n## ", from + 1) - from);
}

// Flags in backticks: `-name`, `-name VALUE`.
std::set<std::string> DocumentedFlags(const std::string& text) {
  return Matches(text, "`-([a-z0-9-]+)");
}

std::vector<fs::path> Pages() {
  std::vector<fs::path> pages;
  for (const char* folder : {"docs", "policies", "agent", "webhook", "charts", "pkg/adr"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kSource / folder))
      if (entry.path().extension() == ".md") pages.push_back(entry.path());
  }
  for (const char* page : {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"})
    pages.push_back(kSource / page);
  return pages;
}

// The anchors that GitHub makes of headings.
std::set<std::string> Anchors(const std::string& page) {
  std::set<std::string> anchors;
  for (const std::string& heading : Matches(page, "^#+ (.*)$")) {
    std::string anchor;
    for (const char c : heading) {
      if (c == ' ' || c == '-') anchor += '-';
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_')
        anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    anchors.insert(anchor);
  }
  return anchors;
}

TEST(DocumentationTest, HasEveryFlag) {
  for (const char* const program : {"cri-resmgr", "cri-resmgr-agent", "cri-resmgr-webhook"}) {
    const std::set<std::string> flags = FlagsOf(program);
    ASSERT_GE(flags.size(), 7U) << program;
    EXPECT_THAT(DocumentedFlags(CommandLineSection(program)), IsSupersetOf(flags)) << program;
  }
}

TEST(DocumentationTest, HasNoFlagThatIsNotThere) {
  for (const char* const program : {"cri-resmgr", "cri-resmgr-agent", "cri-resmgr-webhook"}) {
    EXPECT_THAT(FlagsOf(program), IsSupersetOf(DocumentedFlags(CommandLineSection(program))))
        << program;
  }
}

TEST(DocumentationTest, HasEveryCommandOfTheControlProgram) {
  const std::set<std::string> commands = Commands();
  ASSERT_GE(commands.size(), 12U);
  const std::string flags = CommandLineSection("cri-resmgr-ctl");
  const std::string control = Read(kSource / "docs/control.md");
  for (const std::string& command : commands) {
    const std::regex named(fmt::format("`{}[ `]", command));
    EXPECT_TRUE(std::regex_search(flags, named)) << command;
    EXPECT_TRUE(std::regex_search(control, named)) << command;
    EXPECT_THAT(DocumentedFlags(flags), IsSupersetOf(FlagsOf("cri-resmgr-ctl", command)))
        << command;
  }
}

TEST(DocumentationTest, HasEveryMachineThatIsTested) {
  const std::string page = Read(kSource / "docs/versions.md");
  int machines = 0;
  for (const auto& file : fs::directory_iterator(kSource / "test/machines/shapes")) {
    EXPECT_THAT(page, testing::HasSubstr(fmt::format("| `{}` |", file.path().filename().string())));
    ++machines;
  }
  EXPECT_GE(machines, 8);
}

// "Suite.Name" of each test in the source, and "Suite".
std::set<std::string> NamesOfTests() {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(kSource / "test")) {
    if (entry.path().extension() != ".cc") continue;
    const std::string text = Read(entry.path());
    const std::regex pattern(R"(TEST(?:_[FP])?\(\s*([A-Za-z0-9]+),\s*([A-Za-z0-9]+)\))");
    for (std::sregex_iterator at(text.begin(), text.end(), pattern); at != std::sregex_iterator();
         ++at) {
      names.insert((*at)[1]);
      names.insert(fmt::format("{}.{}", (*at)[1].str(), (*at)[2].str()));
    }
  }
  return names;
}

TEST(DocumentationTest, TestsThatProveWhatIsSupportedExist) {
  const std::string page = Read(kSource / "docs/support.md");
  const std::set<std::string> named =
      Matches(page, "`([A-Z][A-Za-z0-9]*Test(?:\\.[A-Za-z0-9]+)?)`");
  ASSERT_GE(named.size(), 25U);
  EXPECT_THAT(NamesOfTests(), IsSupersetOf(named));
  for (const std::string& script : Matches(page, "`(scripts/[a-z-]+)`"))
    EXPECT_TRUE(fs::exists(kSource / script)) << script;
  // A row names a test, or says that there is none.
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| ") || line.find(" proved by ") != std::string::npos ||
        line.starts_with("| ---")) {
      continue;
    }
    const bool proved = line.find("Test`") != std::string::npos ||
                        line.find("the same") != std::string::npos ||
                        line.find("the rows above") != std::string::npos;
    EXPECT_NE(proved, line.find("by hand only") != std::string::npos) << line;
  }
}

TEST(DocumentationTest, HasEveryFieldOfNriPlugins) {
  const fs::path file = fs::path(testing::TempDir()) / fmt::format("fields-{}.yaml", getpid());
  std::ofstream(file) << "nri: {Host: {Unsupported: {x: fail}}}\n";
  const Output output = Answer(
      "cri-resmgr", fmt::format("-config {} -relay-dir /nonexistent -check-config", file.string()));
  fs::remove(file);
  const size_t known = output.text.find("known here: ");
  ASSERT_NE(known, std::string::npos) << output.text;
  const std::set<std::string> names = Matches(output.text.substr(known), "[ ]([A-Za-z]+)(?=,|$)");
  ASSERT_GE(names.size(), 40U);
  std::string section = Read(kSource / "docs/nri-plugins.md");
  section = section.substr(section.find("\n## Names of the fields\n") + 1);
  section = section.substr(0, section.find("\n## "));
  EXPECT_THAT(Matches(section, "`([A-Z][A-Za-z]+)`"), ContainerEq(names));
}

TEST(DocumentationTest, HasEveryAnnotation) {
  const std::string page = Read(kSource / "docs/annotations.md");
  std::set<std::string> keys;
  for (const char* const folder : {"pkg", "policies", "agent", "webhook"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kSource / folder)) {
      const std::string name = entry.path().filename();
      const bool source = name.ends_with(".cc") || name.ends_with(".h");
      if (!source || name.ends_with("_test.cc") ||
          entry.path().parent_path().filename() == "testing") {
        continue;
      }
      const std::string text = Read(entry.path());
      keys.merge(Matches(
          text,
          R"("((?:cri-resource-manager\.intel\.com|resource-policy\.nri\.io|intel\.com)/[a-z-]+)\")"));
      keys.merge(Matches(text, R"(ReadBoolAnnotation\([a-z_.]+, "([a-z.-]+)\")"));
      if (entry.path().parent_path().filename() == "kube" && name == "annotations.cc")
        keys.merge(Matches(text, R"x("([a-z][a-z.-]+)"(?=[,}]))x"));
      if (entry.path().parent_path().filename() == "topology-aware" && name == "options.cc") {
        keys.merge(Matches(text, R"(reader\.[A-Z][a-z]+\("([a-z.-]+)\")"));
        keys.merge(Matches(text, R"(kKey = "([a-z.-]+)\")"));
        keys.merge(Matches(text, R"(ReadPaths\(reader, "([a-z.-]+)\")"));
      }
    }
  }
  ASSERT_GE(keys.size(), 25U);
  for (const std::string& key : keys) {
    const bool told = page.find('`' + key + '`') != std::string::npos ||
                      page.find("nri.io/" + key + '`') != std::string::npos;
    EXPECT_TRUE(told) << key;
  }
}

TEST(DocumentationTest, ConfigurationsAreRead) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kSource / "sample-configs/migration"))
    files.push_back(entry.path());
  ASSERT_THAT(files, SizeIs(9));
  const fs::path folder = fs::path(testing::TempDir()) / fmt::format("documentation-{}", getpid());
  fs::create_directories(folder);
  const std::string migration = Read(kSource / "docs/migration.md");
  for (const fs::path& file : files) {
    // The page shows the sample as it is, but for its first line.
    const std::string text = Read(file);
    EXPECT_NE(migration.find("```yaml\n" + text.substr(text.find('\n') + 1) + "```"),
              std::string::npos)
        << file;
  }
  for (const char* const page : {"configuration.md", "policies.md", "migration.md"}) {
    int number = 0;
    for (const std::string& block : Matches(Read(kSource / "docs" / page), "```yaml\n([^`]*)```")) {
      files.push_back(folder / fmt::format("{}-{}.yaml", page, ++number));
      std::ofstream(files.back()) << block;
    }
    EXPECT_GE(number, 1) << page;
  }
  for (const fs::path& file : files) {
    const Output output = Answer(
        "cri-resmgr", fmt::format("-config {} -topology 'synthetic:package:2 numa:2 core:8 pu:2' "
                                  "-relay-dir {} -hook-dir disabled -check-config",
                                  file.string(), folder.string()));
    EXPECT_EQ(output.status, 0) << file << ": " << output.text;
  }
  fs::remove_all(folder);
}

// A row of a table by its first cell: the other cells, without blanks, commas and backticks.
std::vector<std::string> RowOf(const std::string& page, const std::string& first) {
  const size_t at = page.find("\n| " + first + " |");
  EXPECT_NE(at, std::string::npos) << first;
  std::istringstream line(page.substr(at + 1, page.find('\n', at + 1) - at - 1));
  std::vector<std::string> cells;
  for (std::string cell; std::getline(line, cell, '|');) {
    std::erase_if(cell, [](char c) { return c == ' ' || c == ',' || c == '`'; });
    cells.push_back(cell);
  }
  EXPECT_GE(cells.size(), 3U) << first;
  cells.erase(cells.begin(), cells.begin() + 2);
  return cells;
}

// The settings that docs/scale.md recommends follow from what it says about them, and are those of
// programs, chart and tests.
TEST(DocumentationTest, SettingsForManyNodesAreTrue) {
  const std::string page = Read(kSource / "docs/scale.md");
  const struct {
    const char* text;
    int nodes;
  } sizes[] = {{"600", 600}, {"1,000", 1000}, {"5,000", 5000}, {"10,000", 10'000}};
  for (const auto& size : sizes) {
    const auto row = RowOf(page, size.text);
    ASSERT_EQ(row.size(), 3U) << size.text;
    // 7.5 ms for each node, at least the default; 70 s for each 1,000.
    EXPECT_EQ(row[0], fmt::format("{}s", std::max(5, (size.nodes * 75 + 9999) / 10'000)));
    EXPECT_EQ(row[1], fmt::format("{}s", size.nodes * 70 / 1000));
    EXPECT_EQ(row[2], fmt::format("{}", std::min(size.nodes / 10, 100)));
  }
  // The settings of the simulation behind the figures.
  EXPECT_NE(Read(kSource / "test/integration/agent/fleet_test.cc").find("kStartSpread{700'000}"),
            std::string::npos);
  EXPECT_NE(Read(kSource / "agent/status_reporter.h").find("spread{75'000}"), std::string::npos);
  // Defaults, as the page and the program have them.
  const std::string help = Answer("cri-resmgr-agent", "-help").text;
  for (const char* const flag : {"report-spread", "start-spread"}) {
    const auto told =
        Matches(help, fmt::format("-{} TIME\n(?:        [^\n]*\n)*?        Default: (\\S+)", flag));
    ASSERT_THAT(told, SizeIs(1)) << flag;
    EXPECT_NE(page.find(fmt::format("**`-{}`** (default `{}`)", flag, *told.begin())),
              std::string::npos)
        << flag;
  }
  // The chart's sample for 10,000 nodes.
  const std::string sample = Read(kSource / "charts/cri-resmgr/samples/everything.yaml");
  for (const char* const line :
       {"  reportSpread: 75s\n", "  startSpread: 700s\n", "  maxUnavailable: 1%\n"})
    EXPECT_NE(sample.find(line), std::string::npos) << line;
}

// "PAGE: LINK" of broken links.
std::vector<std::string> BrokenLinks(const std::vector<fs::path>& pages) {
  std::vector<std::string> broken;
  for (const fs::path& page : pages) {
    for (const std::string& link : Matches(Read(page), R"(\]\(([^)\s]+)\))")) {
      if (link.starts_with("http")) continue;
      const size_t hash = link.find('#');
      const std::string file = link.substr(0, hash);
      const fs::path target = file.empty() ? page : (page.parent_path() / file).lexically_normal();
      const bool there = fs::exists(target);
      const bool anchor = !there || hash == std::string::npos || target.extension() != ".md" ||
                          Anchors(Read(target)).contains(link.substr(hash + 1));
      if (!there || !anchor) broken.push_back(fmt::format("{}: {}", page.string(), link));
    }
  }
  return broken;
}

TEST(DocumentationTest, LinksLeadSomewhere) {
  EXPECT_THAT(BrokenLinks(Pages()), IsEmpty());
}

// The site of scripts/docs-site, where the program that makes it is.
TEST(DocumentationTest, LinksOfTheSiteLeadSomewhere) {
  if (std::system("command -v cmark-gfm >/dev/null") != 0)
    GTEST_SKIP() << "cmark-gfm is not installed";
  const std::string command = fmt::format("{}/scripts/docs-site --check", kSource.string());
  EXPECT_EQ(std::system(command.c_str()), 0);
}

// The pages that cmake/install.cmake installs, as cmake/install_pages.cmake leaves them.
TEST(DocumentationTest, LinksOfInstalledPagesLeadSomewhere) {
  const fs::path root = fs::path(testing::TempDir()) / fmt::format("pages-{}", getpid());
  fs::create_directories(root / "policies");
  for (const char* const page : {"README.md", "CHANGELOG.md"})
    fs::copy(kSource / page, root / page);
  fs::copy(kSource / "docs", root / "docs", fs::copy_options::recursive);
  fs::copy(kSource / "sample-configs", root / "examples", fs::copy_options::recursive);
  for (const char* const policy : {"static", "static-plus", "topology-aware", "balloons"}) {
    fs::create_directories(root / "policies" / policy);
    fs::copy(kSource / "policies" / policy / "README.md", root / "policies" / policy / "README.md");
  }
  const std::string command = fmt::format("cmake -DPAGES={} -P {}/cmake/install_pages.cmake",
                                          root.string(), kSource.string());
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::vector<fs::path> pages;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".md") continue;
    pages.push_back(entry.path());
    EXPECT_EQ(Read(entry.path()).find("sample-configs"), std::string::npos) << entry.path();
  }
  EXPECT_GT(pages.size(), 30U);
  EXPECT_THAT(BrokenLinks(pages), IsEmpty());
  fs::remove_all(root);
}

}  // namespace
}  // namespace resmgr
