// SPDX-License-Identifier: Apache-2.0
// The commands of docs/how-to/*.md, read from the pages and run in their order on the real daemon.
//
// A block "```yaml" whose first line is "# NAME.yaml" is a file. Each line of a block "```sh" is a
// command. A block "```text" is the output of the last command: its lines are in the output in
// their order, apart from the widths of columns; a line "..." stands for any lines, and "…" between
// words of a line for any words. Two minutes of a command are ten seconds here.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pkg/simulator/kube_objects.h"
#include "test/integration/control_fixture.h"
#include "test/support/programs/programs.h"
#include "test/support/sample_documents.h"

namespace resmgr::test {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;

struct PageBlock {
  std::string kind;  // "sh", "yaml", "text"
  std::vector<std::string> lines;
};

std::vector<PageBlock> BlocksOf(const fs::path& page) {
  std::ifstream text(page);
  EXPECT_TRUE(text.good()) << page;
  std::vector<PageBlock> blocks;
  bool inside = false;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("```")) {
      inside = !inside;
      if (inside) blocks.push_back({line.substr(3), {}});
    } else if (inside) {
      blocks.back().lines.push_back(line);
    }
  }
  return blocks;
}

// Words apart from the blanks between them, without quotes.
std::vector<std::string> WordsOf(const std::string& line) {
  std::vector<std::string> words;
  bool quoted = false;
  bool open = false;
  for (const char c : line) {
    if (c == '\'' || c == '"') {
      quoted = !quoted;
      if (!open) words.emplace_back();
      open = true;
    } else if (c == ' ' && !quoted) {
      open = false;
    } else {
      if (!open) words.emplace_back();
      open = true;
      words.back() += c;
    }
  }
  return words;
}

std::string Squeezed(const std::string& line) {
  std::istringstream words(line);
  std::string squeezed;
  for (std::string word; words >> word;)
    squeezed += (squeezed.empty() ? "" : " ") + word;
  return squeezed;
}

class HowToTest : public ControlTest {
 protected:
  static constexpr char kMachine[] = "synthetic:package:1 numa:2(memory=8GiB) l3:1 core:4 pu:1";

  void StartNode(const std::vector<std::string>& more) {
    StartRuntime();
    std::vector<std::string> flags = Flags({"-topology", kMachine});
    flags.insert(flags.end(), more.begin(), more.end());
    flags_ = flags;
    StartDaemon(flags);
    if (HasFatalFailure()) return;
    kubelet_ = std::make_unique<CriClient>(RelaySocket());
  }

  // A stand-in for a program that is not ours; the words are those of the whole command.
  using Stand = std::function<void(const std::vector<std::string>& words)>;

  void RunPage(const std::string& name) {
    const fs::path page = fs::path(RESMGR_SOURCE_DIR) / "docs/how-to" / name;
    int commands = 0;
    for (const PageBlock& block : BlocksOf(page)) {
      if (HasFatalFailure()) return;
      if (block.kind == "yaml") SaveFile(block);
      if (block.kind == "text") ExpectOutput(block.lines);
      if (block.kind != "sh") continue;
      for (const std::string& line : block.lines) {
        ++commands;
        Do(line);
      }
    }
    EXPECT_GE(commands, 2) << page;
  }

  void SaveFile(const PageBlock& block) {
    ASSERT_FALSE(block.lines.empty());
    const std::string& first = block.lines.front();
    ASSERT_TRUE(first.starts_with("# ") && first.ends_with(".yaml")) << first;
    std::string text;
    for (const std::string& line : block.lines)
      text += line + "\n";
    WriteFile(first.substr(2), text);
  }

  void Do(const std::string& line) {
    SCOPED_TRACE(line);
    std::string command = line;
    std::string output_file;
    if (const size_t at = command.find(" > "); at != std::string::npos) {
      output_file = command.substr(at + 3);
      command = command.substr(0, at);
    }
    std::vector<std::string> words = WordsOf(command);
    ASSERT_FALSE(words.empty());
    output_.clear();
    if (words.front() == "cri-resmgr-ctl") {
      DoCtl({words.begin() + 1, words.end()});
    } else {
      const auto program = programs_.find(words.front());
      ASSERT_NE(program, programs_.end()) << "the test does not know this program";
      program->second(words);
    }
    if (!output_file.empty()) WriteFile(output_file, output_);
  }

  void DoCtl(std::vector<std::string> arguments) {
    for (std::string& argument : arguments) {
      if (fs::exists(Path(argument)) || argument.ends_with(".dump")) argument = Path(argument);
      if (argument == "2m") argument = "10s";
    }
    const Shown shown = Ctl(arguments);
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    output_ = shown.out + shown.err;
  }

  void ExpectOutput(const std::vector<std::string>& lines) {
    std::istringstream text(output_);
    std::string rest;
    for (std::string line; std::getline(text, line);)
      rest += Squeezed(line) + "\n";
    for (const std::string& line : lines) {
      const std::string wanted = Squeezed(line);
      if (wanted == "..." || wanted.empty()) continue;
      const size_t gap = wanted.find(" … ");
      const size_t at = rest.find(wanted.substr(0, gap));
      const size_t end = std::min(rest.find('\n', at), rest.size());
      const bool found =
          at != std::string::npos &&
          (gap == std::string::npos || rest.substr(at, end - at).ends_with(wanted.substr(gap + 5)));
      EXPECT_TRUE(found) << "\"" << line << "\" is not in\n" << output_;
      if (found) rest = rest.substr(end);
    }
  }

  std::vector<PodOfObject> PodsOf(const std::string& file) {
    KubeObjects objects;
    for (const ConfigNode& document : ReadDocuments(Path(file)))
      EXPECT_THAT(objects.Read(document), IsOk());
    return objects.TakePods();
  }

  // Creates the pod as a kubelet does; returns "" or the refusal.
  std::string CreatePod(const Manifest& manifest) {
    const auto config = PodConfigOf(manifest);
    const auto pod = kubelet_->RunPod(config);
    if (!pod.ok()) return std::string(Message(pod.status()));
    for (const Manifest::Container& each : manifest.containers) {
      const auto container = kubelet_->CreateContainer(*pod, config, ContainerOf(each));
      if (!container.ok()) return std::string(Message(container.status()));
      const Status started = kubelet_->StartContainer(*container);
      if (!started.ok()) return std::string(Message(started));
      containers_[manifest.FullName() + "/" + each.name] = *container;
    }
    return "";
  }

  static cri::PodSandboxConfig PodConfigOf(const Manifest& manifest) {
    cri::PodSandboxConfig config = MakePod(
        {.name = manifest.name, .namespace_name = manifest.namespace_name, .qos = manifest.Qos()});
    for (const auto& [key, value] : manifest.annotations)
      (*config.mutable_annotations())[key] = value;
    for (const auto& [key, value] : manifest.labels)
      (*config.mutable_labels())[key] = value;
    return config;
  }

  static cri::ContainerConfig ContainerOf(const Manifest::Container& container) {
    const Requirements& needs = container.requirements;
    return MakeContainer({.name = container.name,
                          .cpu_request = needs.cpu_request,
                          .cpu_limit = needs.cpu_limit,
                          .memory_limit = needs.memory_limit});
  }

  // kubectl, as far as the pages use it.
  void Kubectl(const std::vector<std::string>& words) {
    ASSERT_GE(words.size(), 3U);
    ASSERT_EQ(words[1], "apply");
    ASSERT_EQ(words[2], "-f");
    for (const ConfigNode& document : ReadDocuments(Path(words[3])))
      if (At(document, "kind").text == "ConfigMap") ApplyConfigMap(document);
    for (const PodOfObject& pod : PodsOf(words[3])) {
      const std::string refused = CreatePod(pod.manifest);
      EXPECT_EQ(refused.empty(), !expect_refusal_) << refused;
    }
  }

  // Delivers the map to the node as its agent does.
  void ApplyConfigMap(const ConfigNode& map) {
    std::map<std::string, std::string> data;
    for (const ConfigNode::Entry& entry : At(map, "data").entries)
      data[entry.key] = entry.value.text;
    EXPECT_EQ(SetConfig(data), "");
  }

  static Manifest GuaranteedPod(const std::string& name, int cpus) {
    Manifest manifest{.namespace_name = "default", .name = name};
    const Requirements needs{.cpu_request = MilliCpu{cpus * 1000},
                             .cpu_limit = MilliCpu{cpus * 1000},
                             .memory_request = Bytes{64 << 20},
                             .memory_limit = Bytes{64 << 20}};
    manifest.containers.push_back({.name = "main", .requirements = needs});
    return manifest;
  }

  // Runs the command in the directory of the page's files; expects exit status 0.
  void RunHere(const std::string& command) {
    const std::string line = fmt::format("cd {} && {} >output 2>&1", directory_.path(), command);
    EXPECT_EQ(std::system(line.c_str()), 0) << TextOf(Path("output"));
    output_ = TextOf(Path("output"));
  }

  CpuSet CpusOf(const std::string& container) { return CpusAtRuntime(containers_.at(container)); }

  void RestartDaemon() {
    ASSERT_THAT(daemon_->Terminate(), IsOk());
    StartDaemon(flags_);
    ASSERT_TRUE(Eventually([&] { return Ctl({"status"}).exit_code == 0; }));
  }

  std::vector<std::string> flags_;
  std::string output_;
  bool expect_refusal_ = false;
  std::unique_ptr<CriClient> kubelet_;
  std::map<std::string, std::string> containers_;  // ids by "namespace/pod/container"
  std::map<std::string, Stand> programs_ = {
      {"kubectl", [this](const auto& words) { Kubectl(words); }},
      {"diff", [this](const auto& words) { RunHere(fmt::format("{}", fmt::join(words, " "))); }},
      {"cri-resmgr", [this](const auto& words) {
         RunHere(fmt::format("{} {}", test::Program("cri-resmgr"),
                             fmt::join(words.begin() + 1, words.end(), " ")));
       }}};
};

TEST_F(HowToTest, EveryPageHasATest) {
  const std::set<std::string> tested = {
      "change-one-nodes-policy.md", "exclusive-cpus-of-one-l3.md",   "memory-by-node.md",
      "my-pods-on-a-new-server.md", "see-the-traffic-of-one-pod.md", "undo.md",
      "upgrade-without-loss.md",    "who-shares-cpu-7.md",           "why-was-it-refused.md",
      "write-a-policy.md"};
  std::set<std::string> pages;
  for (const auto& entry : fs::directory_iterator(fs::path(RESMGR_SOURCE_DIR) / "docs/how-to"))
    if (entry.path().filename() != "README.md") pages.insert(entry.path().filename());
  EXPECT_EQ(pages, tested);
}

TEST_F(HowToTest, ExclusiveCpusOfOneL3) {
  StartNode({});
  RunPage("exclusive-cpus-of-one-l3.md");
  EXPECT_EQ(CpusOf("default/solver/main").ToString(), "4-7");
}

TEST_F(HowToTest, WhyWasItRefused) {
  StartNode({"-policy", "static", "-reserved-resources", "CPU=1"});
  ASSERT_EQ(CreatePod(GuaranteedPod("db", 4)), "");
  expect_refusal_ = true;
  RunPage("why-was-it-refused.md");
}

TEST_F(HowToTest, OneNodesPolicyByConfigMap) {
  StartNode({});
  RunPage("change-one-nodes-policy.md");
  EXPECT_EQ(PolicyInForce(), "static-plus");
}

TEST_F(HowToTest, WhoSharesCpu7) {
  StartNode({"-policy", "static", "-reserved-resources", "CPU=1"});
  ASSERT_EQ(CreatePod(GuaranteedPod("db", 2)), "");
  Manifest shared = GuaranteedPod("web", 1);
  shared.containers.front().requirements.cpu_limit = {};
  ASSERT_EQ(CreatePod(shared), "");
  RunPage("who-shares-cpu-7.md");
}

TEST_F(HowToTest, Undo) {
  StartNode({"-policy", "static", "-reserved-resources", "CPU=1"});
  ASSERT_EQ(CreatePod(GuaranteedPod("db", 2)), "");
  ASSERT_EQ(CpusOf("default/db/main").size(), 2);
  programs_["systemctl"] = [this](const std::vector<std::string>& words) {
    if (words[1] == "restart") {
      ASSERT_EQ(words.back(), "kubelet");
      kubelet_ = std::make_unique<CriClient>(RuntimeSocket());
    } else {
      ASSERT_EQ(words[1], "disable");
      if (words.back() != "cri-resmgr-agent.service") EXPECT_THAT(daemon_->Terminate(), IsOk());
    }
  };
  programs_["crictl"] = [this](const std::vector<std::string>& words) {
    ASSERT_EQ(words[1], "inspect");
    output_ = fmt::format("\"cpus\": \"{}\"\n", CpusOf("default/db/main").ToString());
  };
  RunPage("undo.md");
  EXPECT_EQ(CpusOf("default/db/main").size(), kCpus);
  EXPECT_EQ(CreatePod(GuaranteedPod("later", 2)), "") << "without the daemon";
}

TEST_F(HowToTest, UpgradeWithoutLoss) {
  StartNode({"-policy", "static", "-reserved-resources", "CPU=1"});
  ASSERT_EQ(CreatePod(GuaranteedPod("db", 2)), "");
  const CpuSet before = CpusOf("default/db/main");
  programs_["systemctl"] = [](const std::vector<std::string>& words) {
    EXPECT_EQ(words.back(),
              words[1] == "stop" || words[1] == "start" ? "cri-resmgr" : "cri-resmgr.socket");
  };
  programs_["apt"] = [this](const std::vector<std::string>&) { RestartDaemon(); };
  RunPage("upgrade-without-loss.md");
  EXPECT_EQ(CpusOf("default/db/main"), before);
}

TEST_F(HowToTest, TrafficOfOnePod) {
  StartNode({"-policy", "static", "-reserved-resources", "CPU=1"});
  ASSERT_EQ(CreatePod(GuaranteedPod("web", 1)), "");
  const fs::path dump = Path("web.dump");
  std::thread calls([&] {
    // Waits until the dump has a call: it begins when the daemon has been asked for it.
    EXPECT_TRUE(Eventually([&] {
      const cri::LinuxContainerResources same;
      EXPECT_THAT(kubelet_->UpdateContainer(containers_.at("default/web/main"), same), IsOk());
      return fs::exists(dump) && fs::file_size(dump) > 0;
    }));
  });
  RunPage("see-the-traffic-of-one-pod.md");
  calls.join();
  EXPECT_THAT(TextOf(dump), HasSubstr("UpdateContainerResources"));
}

TEST_F(HowToTest, MyPodsOnANewServer) {
  StartNode({"-policy", "static", "-reserved-resources", "CPU=1"});
  programs_["kubectl"] = [this](const std::vector<std::string>& words) {
    ASSERT_EQ(words[1], "get");
    std::ifstream pods(RESMGR_SOURCE_DIR "/sample-configs/simulate/pods.yaml");
    output_ = {std::istreambuf_iterator<char>(pods), {}};
  };
  RunPage("my-pods-on-a-new-server.md");
}

TEST_F(HowToTest, WriteAPolicy) {
  StartNode({});
  programs_["scripts/build"] = [](const std::vector<std::string>& words) {
    ASSERT_EQ(words[1], "release");
    for (size_t i = 2; i < words.size(); ++i)
      EXPECT_TRUE(fs::exists(test::Program(words[i]))) << words[i];
  };
  RunPage("write-a-policy.md");
}

TEST_F(HowToTest, MemoryByNode) {
  StartNode({"-policy", "topology-aware", "-reserved-resources", "CPU=1"});
  RunPage("memory-by-node.md");
}

}  // namespace
}  // namespace resmgr::test
