// SPDX-License-Identifier: Apache-2.0
// The files of containers that a brain with a small policy places, and the stage that mounts them.
#include "pkg/cpufile/cpu_files.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/pipeline/testing/function_stage.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/failing_file_systems.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/machines/machines.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using test::TestNode;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

using enum QosClass;

constexpr std::string_view kAnnotation = "cpu-file.cri-resource-manager.intel.com";

class CpuFilesTest : public testing::Test {
 protected:
  static CpuFilesConfig All() { return {.containers = CpuFilesConfig::Containers::kAll}; }
  static CpuFilesConfig Annotated() {
    return {.containers = CpuFilesConfig::Containers::kAnnotated};
  }

  CpuFilesTest() { MakeFiles(All()); }

  // A daemon's, which begins.
  void MakeFiles(const CpuFilesConfig& config) {
    files_.reset();
    observer_.to = nullptr;
    files_ = std::make_unique<CpuFiles>(
        CpuFiles::Options{.loop = node_.loop(),
                          .pipeline = pipeline_,
                          .directory = path_,
                          .cpus = node_.machine().online(),
                          .mems = node_.machine().node_ids(),
                          .pinning = PinningRule(&runtimes_),
                          .writer = {.patience = milliseconds(500), .retry = milliseconds(5)}});
    observer_.to = files_.get();
    files_->Configure(config);
  }
  // Waits until all files are written, found or removed.
  void Settle() {
    int turns = 0;
    EXPECT_TRUE(node_.RunUntil([&] {
      return ++turns > 10 && files_->behind() == 0 && files_->size() == Directories().size();
    }));
  }
  std::vector<std::string> Directories() const {
    std::vector<std::string> names;
    if (!fs::exists(path_)) return names;
    for (const auto& entry : fs::directory_iterator(path_))
      names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }
  // The file's lines without MEMORY_NODES, of the only container with this name.
  std::string FileOf(std::string_view name) const {
    std::string found = "none";
    for (const std::string& directory : Directories()) {
      if (directory.find(fmt::format("_{}_", name)) == std::string::npos) continue;
      if (found != "none") return "several";
      found = ReadFile(path_ + "/" + directory + "/cpus.env", 1000).value_or("no file");
    }
    const size_t mems = found.find("MEMORY_NODES=0\n");
    return mems == std::string::npos ? found : found.substr(0, mems);
  }
  static std::string Text(std::string_view cpus, std::string_view exclusive,
                          std::string_view shared) {
    return fmt::format("CPUS={}\nEXCLUSIVE_CPUS={}\nSHARED_CPUS={}\n", cpus, exclusive, shared);
  }

  PodSandboxId AddPod(std::string_view name, QosClass qos, StringMap annotations = {}) {
    Pod pod;
    pod.id = PodSandboxId(fmt::format("sandbox-of-{}", name));
    pod.name = name;
    pod.namespace_name = "ns";
    pod.qos = qos;
    pod.annotations = std::move(annotations);
    pod.runtime_handler = handler_;
    node_.runtime.held.pods.push_back(pod);
    PodSandboxId id = pod.id;
    node_.manager().PodCreated(std::move(pod));
    return id;
  }
  struct Begun {
    CreateRequest request;
    Admission admission;
    std::unique_ptr<test::TestCall> call;
  };
  // Decided by the policy and by the stage.
  Begun Begin(const CreateRequest& request, std::vector<Mount> mounts = {}) {
    Begun begun{request, node_.manager().AdmitCreate(CreateRequest(request)).value(), nullptr};
    begun.call = std::make_unique<test::TestCall>(pipeline_, Operation::kCreateContainer);
    begun.call->details.mounts = std::move(mounts);
    begun.call->request.body = CreateRequest(request);
    begun.call->Start();
    EXPECT_TRUE(node_.RunUntil([&begun] { return begun.call->passed(); }));
    return begun;
  }
  // The mounts that the stage adds, by their paths in the container.
  static std::map<std::string, Mount> Added(const Begun& begun) {
    std::map<std::string, Mount> added;
    if (!begun.call->wide) return added;
    for (const auto& [path, mount] : begun.call->wide->mounts)
      added.emplace(path, mount.value());
    return added;
  }
  ContainerId Finish(Begun& begun) {
    begun.call->Reply(0, "id");
    return node_.Created(begun.request, begun.admission);
  }
  ContainerId Run(std::string_view name, QosClass qos, int64_t milli_cpu,
                  StringMap annotations = {}) {
    Begun begun =
        Begin(TestNode::Request(AddPod(name, qos, std::move(annotations)), name, milli_cpu));
    ContainerId id = Finish(begun);
    node_.runtime.AnswerAll();
    node_.Start(id);
    Settle();
    return id;
  }

  void Rename(const ContainerId& id, std::string_view name) {
    node_.runtime.Find(id)->name = name;
    node_.manager().OnContainerEvent(
        {ContainerEvent::Kind::kRenamed, std::string(id.value()), std::string(name)});
  }

  // An observer that passes acts on and outlives the files, as a daemon's does in these tests.
  class Switch final : public Observer {
   public:
    void OnPlaced(const Act& act) override {
      if (to != nullptr) to->OnPlaced(act);
    }
    void OnReleased(const Act& act) override {
      if (to != nullptr) to->OnReleased(act);
    }
    void OnInForce(const Act& act, const Place& place) override {
      if (to != nullptr) to->OnInForce(act, place);
    }
    void OnRenamed(const Act& act, std::string_view created_name) override {
      if (to != nullptr) to->OnRenamed(act, created_name);
    }
    void OnRemoved(const Act& act) override {
      if (to != nullptr) to->OnRemoved(act);
    }
    void OnListed(const Snapshot& all) override {
      if (to != nullptr) to->OnListed(all);
    }
    Observer* to = nullptr;
  };

  test::CrashingFileSystem state_{1};  // written on a thread of the node's
  const TempDir temp_;
  const std::string path_ = temp_.File("cpus");
  std::string handler_;
  const RuntimesConfig runtimes_{
      .classes = {{"vm", RuntimeClassConfig{.pinning = Pinning::kSandbox}}}};
  Switch observer_;
  TestNode node_{test::S1Ht(),  // CPUs 0-7
                 test::FirstFit, TestNode::Observed(observer_)};
  LoopClock clock_{node_.loop()};
  Pipeline pipeline_{clock_};
  std::unique_ptr<CpuFiles> files_;
};

TEST_F(CpuFilesTest, TheFileIsThereBeforeTheRuntimeCreatesTheContainer) {
  Begun begun = Begin(TestNode::Request(AddPod("dsp", kGuaranteed), "dsp", 2000));
  EXPECT_EQ(FileOf("dsp"), Text("1-2", "1-2", ""));
  const auto added = Added(begun);
  ASSERT_THAT(added, SizeIs(1));
  const auto& [path, mount] = *added.begin();
  EXPECT_EQ(path, "/run/cri-resmgr");
  EXPECT_EQ(mount, (Mount{.container_path = "/run/cri-resmgr",
                          .host_path = path_ + "/sandbox-of-dsp_dsp_0",
                          .read_only = true,
                          .selinux_relabel = true}));
  Finish(begun);
  Settle();
  EXPECT_EQ(FileOf("dsp"), Text("1-2", "1-2", ""));
  EXPECT_EQ(files_->size(), 1U);
}

TEST_F(CpuFilesTest, TheFileFollowsWhatTheRuntimeHasDone) {
  Run("web", kBurstable, 100);
  EXPECT_EQ(FileOf("web"), Text("0-7", "", "0-7"));
  Begun begun = Begin(TestNode::Request(AddPod("dsp", kGuaranteed), "dsp", 2000));
  const ContainerId dsp = Finish(begun);
  Settle();
  EXPECT_EQ(FileOf("web"), Text("0-7", "", "0-7")) << "the runtime has not answered";
  node_.runtime.AnswerAll();
  Settle();
  EXPECT_EQ(FileOf("web"), Text("0,3-7", "", "0,3-7"));
  node_.Remove(dsp);
  node_.runtime.AnswerAll();
  Settle();
  EXPECT_EQ(FileOf("web"), Text("0-7", "", "0-7"));
  EXPECT_THAT(Directories(), ElementsAre("sandbox-of-web_web_0"));
}

TEST_F(CpuFilesTest, AFailedCreationLeavesNothing) {
  Begun refused = Begin(TestNode::Request(AddPod("dsp", kGuaranteed), "dsp", 2000));
  refused.call->Reply(13, "id");
  node_.manager().CreateFailed(refused.admission.key);
  Settle();
  EXPECT_THAT(Directories(), IsEmpty());
  Begun rolled_back = Begin(refused.request);
  rolled_back.call->call.RollBack();
  node_.manager().CreateFailed(rolled_back.admission.key);
  Settle();
  EXPECT_THAT(Directories(), IsEmpty());
  EXPECT_EQ(files_->size(), 0U);
  Begun again = Begin(refused.request);
  Finish(again);
  Settle();
  EXPECT_EQ(FileOf("dsp"), Text("1-2", "1-2", ""));
}

// The runtime may have created the container: only a list shows it.
TEST_F(CpuFilesTest, ACreationWithoutAnAnswerKeepsItsFileUntilAListTells) {
  Begun lost = Begin(TestNode::Request(AddPod("dsp", kGuaranteed), "dsp", 2000));
  lost.call->call.Abandon();
  node_.manager().CreateFailed(lost.admission.key);
  Settle();
  EXPECT_THAT(Directories(), ElementsAre("sandbox-of-dsp_dsp_0"));
  node_.Reconnect();
  Settle();
  EXPECT_THAT(Directories(), IsEmpty());

  Begun created = Begin(lost.request);
  created.call->call.Abandon();
  node_.manager().CreateFailed(created.admission.key);
  node_.Hold(created.request, created.admission);
  node_.Reconnect();
  Settle();
  EXPECT_THAT(Directories(), ElementsAre("sandbox-of-dsp_dsp_0"));
  EXPECT_EQ(files_->size(), 1U);
}

// CANCELLED, DEADLINE_EXCEEDED, UNAVAILABLE.
TEST_F(CpuFilesTest, ACreationThatMayHaveTakenEffectKeepsItsFile) {
  for (const int code : {1, 4, 14}) {
    const std::string name = fmt::format("dsp{}", code);
    Begun late = Begin(TestNode::Request(AddPod(name, kGuaranteed), name, 1000));
    late.call->Reply(code, "id");
    node_.manager().CreateFailed(late.admission.key);
    node_.Hold(late.request, late.admission);
    node_.Reconnect();
    Settle();
    EXPECT_NE(FileOf(name), "none") << code;
  }
  EXPECT_EQ(files_->size(), 3U);
}

TEST_F(CpuFilesTest, AFailedCreationOfAnExistingContainerDoesItNoHarm) {
  const ContainerId dsp = Run("dsp", kGuaranteed, 2000);
  Begun again = Begin(TestNode::Request(node_.Known(dsp)->pod_id, "dsp", 1000));
  again.call->Reply(6, "id");
  node_.manager().CreateFailed(again.admission.key);
  Settle();
  EXPECT_EQ(FileOf("dsp"), Text("1-2", "1-2", ""));
}

TEST_F(CpuFilesTest, ContainersGetOneAsConfigurationAndAnnotationSay) {
  const std::string key(kAnnotation);
  Run("all", kBurstable, 100);
  Run("not", kBurstable, 100, {{key, "false"}});
  files_->Configure(Annotated());
  Run("unsaid", kBurstable, 100);
  Run("said", kBurstable, 100, {{key + "/container.said", "true"}});
  Run("other", kBurstable, 100, {{key + "/container.said", "true"}});
  Run("nonsense", kBurstable, 100, {{key, "perhaps"}});
  files_->Configure({});
  Run("off", kBurstable, 100, {{key, "true"}});
  EXPECT_THAT(Directories(), ElementsAre("sandbox-of-all_all_0", "sandbox-of-said_said_0"));
  EXPECT_FALSE(pipeline_.LooksAt(Operation::kCreateContainer)) << "no request is read for it";
  // Files of existing containers are still updated.
  Run("dsp", kGuaranteed, 2000);
  node_.runtime.AnswerAll();
  Settle();
  EXPECT_EQ(FileOf("all"), Text("0,3-7", "", "0,3-7"));
}

TEST_F(CpuFilesTest, ContainersThatAreNeverBoundGetNone) {
  handler_ = "vm";
  Run("vm", kBurstable, 100);
  EXPECT_THAT(Directories(), IsEmpty());
}

TEST_F(CpuFilesTest, OneThatThePolicyLeavesAloneHasWhatItsRequestSays) {
  auto& policy = static_cast<test::FirstFitPolicy&>(node_.policy());
  policy.left_alone = {"any", "asked"};
  Run("any", kBurstable, 100);
  EXPECT_EQ(FileOf("any"), Text("0-7", "", "0-7"));
  CreateRequest request = TestNode::Request(AddPod("asked", kBurstable), "asked", 100);
  request.resources.cpuset_cpus = "2-3";
  Begun begun = Begin(request);
  Finish(begun);
  node_.runtime.AnswerAll();
  Settle();
  EXPECT_EQ(FileOf("asked"), Text("2-3", "", "2-3"));
}

TEST_F(CpuFilesTest, AMountOfItsOwnWins) {
  Begun begun = Begin(TestNode::Request(AddPod("dsp", kGuaranteed), "dsp", 2000),
                      {{.container_path = "/run/cri-resmgr", .host_path = "/data"}});
  EXPECT_THAT(Added(begun), IsEmpty());
  const ContainerId id = Finish(begun);
  Settle();
  EXPECT_THAT(Directories(), IsEmpty());
  EXPECT_EQ(pipeline_.ignored_failures(), 1U);
  EXPECT_EQ(files_->WhyNone(id),
            "none: it has a mount of its own at /run/cri-resmgr, and the file would be at "
            "/run/cri-resmgr");
  node_.Remove(id);
  EXPECT_EQ(files_->WhyNone(id), "");
}

TEST_F(CpuFilesTest, AMountOfItsOwnWinsHoweverItIsWritten) {
  const std::vector<Mount> in_the_way = {
      {.container_path = "/run//cri-resmgr", .host_path = "/data"},
      {.container_path = "/run/./cri-resmgr", .host_path = "/data"},
      {.container_path = "/run/cri-resmgr/", .host_path = "/data"},
      {.container_path = "//run/x/../cri-resmgr/.", .host_path = "/data"},
      {.container_path = "/../run/cri-resmgr", .host_path = "/data"},
      {.container_path = "run/cri-resmgr", .host_path = "/data"},
      {.container_path = "/var/run/cri-resmgr", .host_path = "/data"},
      {.container_path = "/run/cri-resmgr", .host_path = "tmpfs"},
      {.container_path = "/run/cri-resmgr", .image = "reference"},
      // Below: its directory could not be made in ours.
      {.container_path = "/run/cri-resmgr//cpus.env", .host_path = "/data"},
      // A mount above: ours would hide its content.
      {.container_path = "/run/", .host_path = "/run"},
      {.container_path = "/var/run", .image = "reference"},
      {.container_path = "/", .host_path = "/"},
  };
  for (size_t i = 0; i < in_the_way.size(); ++i) {
    const std::string name = fmt::format("dsp{}", i);
    Begun begun = Begin(TestNode::Request(AddPod(name, kBurstable), name, 10), {in_the_way[i]});
    EXPECT_THAT(Added(begun), IsEmpty()) << in_the_way[i].container_path;
    Finish(begun);
  }
  EXPECT_EQ(pipeline_.ignored_failures(), in_the_way.size());
}

TEST_F(CpuFilesTest, MountsElsewhereAreNotInTheWay) {
  Begun begun = Begin(TestNode::Request(AddPod("dsp", kGuaranteed), "dsp", 2000),
                      {{.container_path = "/run/cri-resmgr-data", .host_path = "/data"},
                       {.container_path = "/run/other", .host_path = "/data"},
                       {.container_path = "/run/cri-resmgr/../other", .host_path = "/data"},
                       {.container_path = "/runner", .host_path = "/data"},
                       // A runtime's own, which is empty.
                       {.container_path = "/run", .host_path = "tmpfs"}});
  EXPECT_THAT(Added(begun), SizeIs(1));
  Finish(begun);
  EXPECT_EQ(pipeline_.ignored_failures(), 0U);
}

TEST_F(CpuFilesTest, WithoutAFileTheContainerIsCreatedAllTheSame) {
  fs::create_directory(path_);
  fs::permissions(path_, fs::perms::all);
  Begun begun = Begin(TestNode::Request(AddPod("dsp", kGuaranteed), "dsp", 2000));
  EXPECT_THAT(Added(begun), IsEmpty());
  EXPECT_EQ(pipeline_.ignored_failures(), 1U);
  Finish(begun);
  Settle();
  EXPECT_EQ(files_->size(), 0U);
}

TEST_F(CpuFilesTest, ASandboxMayBeNamedByTheBeginningOfItsId) {
  AddPod("dsp", kGuaranteed);
  Begun begun = Begin(TestNode::Request(PodSandboxId("sandbox-of-d"), "dsp", 2000));
  ASSERT_THAT(Added(begun), SizeIs(1));
  EXPECT_EQ(Added(begun).begin()->second.host_path, path_ + "/sandbox-of-dsp_dsp_0");
}

TEST_F(CpuFilesTest, ANameThatNoDirectoryCanHaveGetsNoFile) {
  const std::string name(300, 'x');
  Begun begun = Begin(TestNode::Request(AddPod("dsp", kGuaranteed), name, 2000));
  EXPECT_THAT(Added(begun), IsEmpty());
  Finish(begun);
  Settle();
  EXPECT_THAT(Directories(), IsEmpty());
  EXPECT_EQ(pipeline_.ignored_failures(), 0U);
}

TEST_F(CpuFilesTest, ARestartGoesOnAndRemovesWhatIsLeftOver) {
  Run("web", kBurstable, 100);
  const ContainerId gone = Run("gone", kBurstable, 100);
  const ContainerId exited = Run("exited", kBurstable, 100);
  node_.Stop(exited);
  MakeFiles({});  // a daemon whose configuration gives no new containers any
  node_.runtime.Remove(gone);
  node_.Restart();
  Settle();
  node_.Reconnect();
  Settle();
  EXPECT_THAT(Directories(), ElementsAre("sandbox-of-exited_exited_0", "sandbox-of-web_web_0"));
  Run("dsp", kGuaranteed, 2000);
  node_.runtime.AnswerAll();
  Settle();
  EXPECT_EQ(FileOf("web"), Text("0,3-7", "", "0,3-7"));
}

TEST_F(CpuFilesTest, WhatChangedWhileNoDaemonRanIsInTheFileAfterTheStart) {
  const ContainerId web = Run("web", kBurstable, 100);
  files_.reset();
  observer_.to = nullptr;
  node_.Run("dsp", kGuaranteed, 2000);
  node_.runtime.AnswerAll();
  EXPECT_EQ(node_.runtime.CpusOf(web), "0,3-7");
  EXPECT_EQ(FileOf("web"), Text("0-7", "", "0-7"));
  MakeFiles(All());
  node_.Restart();  // it lists before the directories are known
  Settle();
  EXPECT_EQ(FileOf("web"), Text("0,3-7", "", "0,3-7"));
  EXPECT_THAT(Directories(), ElementsAre("sandbox-of-web_web_0"));
  EXPECT_EQ(files_->size(), 1U);
}

TEST_F(CpuFilesTest, ARenamedContainerKeepsItsFile) {
  const ContainerId web = Run("web", kBurstable, 100);
  Rename(web, "mine");
  EXPECT_EQ(node_.Known(web)->name, "mine");
  Run("dsp", kGuaranteed, 2000);
  node_.runtime.AnswerAll();
  node_.Reconnect();  // with a list
  Settle();
  EXPECT_EQ(FileOf("web"), Text("0,3-7", "", "0,3-7"));
  Rename(web, "again");
  node_.Reconnect();
  Settle();
  EXPECT_EQ(FileOf("web"), Text("0,3-7", "", "0,3-7"));
  node_.Remove(web);
  Settle();
  EXPECT_THAT(Directories(), ElementsAre("sandbox-of-dsp_dsp_0"));
}

TEST_F(CpuFilesTest, ARenamedContainerKeepsItsFileOverARestart) {
  node_.runtime.renames = true;
  node_.KeepState(state_);
  const ContainerId before = Run("before", kBurstable, 100);
  const ContainerId during = Run("during", kBurstable, 100);
  const ContainerId exited = Run("exited", kBurstable, 100);
  Rename(before, "mine");
  node_.runtime.starts_exited = true;
  node_.Stop(exited);
  node_.FlushState();
  for (int i = 0; i < 2; ++i) {
    node_.Restart([&] {
      MakeFiles(All());
      node_.runtime.Find(during)->name = "yours";
      node_.runtime.Find(exited)->name = "theirs";
    });
    Settle();
    node_.Reconnect();
    Settle();
    EXPECT_THAT(Directories(), SizeIs(3));
    node_.FlushState();
  }
  Run("dsp", kGuaranteed, 2000);
  node_.runtime.AnswerAll();
  Settle();
  for (const char* const name : {"before", "during"})
    EXPECT_EQ(FileOf(name), Text("0,3-7", "", "0,3-7")) << name;
  for (const ContainerId& id : {before, during, exited})
    node_.Remove(id);
  Settle();
  EXPECT_THAT(Directories(), ElementsAre("sandbox-of-dsp_dsp_0"));
}

// The directory of its name is mounted in the other one.
TEST_F(CpuFilesTest, OneWithTheFormerNameOfAnotherOneLeavesThatItsFile) {
  const ContainerId former = Run("web", kGuaranteed, 2000);
  Rename(former, "old");
  Begun begun = Begin(TestNode::Request(node_.Known(former)->pod_id, "web", 1000));
  EXPECT_THAT(Added(begun), IsEmpty());
  const ContainerId latter = Finish(begun);
  node_.runtime.AnswerAll();
  node_.Start(latter);
  Settle();
  EXPECT_EQ(FileOf("web"), Text("1-2", "1-2", ""));
  EXPECT_NE(files_->WhyNone(latter), "");
  node_.Reconnect();
  node_.Remove(latter);
  Settle();
  EXPECT_EQ(FileOf("web"), Text("1-2", "1-2", ""));
  node_.Remove(former);
  Settle();
  EXPECT_THAT(Directories(), IsEmpty());
}

TEST_F(CpuFilesTest, ARenamedContainerWithoutAFileTakesThatOfNoOther) {
  MakeFiles({});
  const ContainerId former = Run("web", kGuaranteed, 2000);
  // One of a former run, which counts once the directories are listed.
  fs::create_directories(path_ + "/sandbox-of-former_former_0");
  MakeFiles(All());
  Settle();
  Rename(former, "old");
  Begun begun = Begin(TestNode::Request(node_.Known(former)->pod_id, "web", 1000));
  EXPECT_THAT(Added(begun), SizeIs(1));
  Rename(former, "older");
  const ContainerId latter = Finish(begun);
  node_.runtime.AnswerAll();
  node_.Start(latter);
  node_.Reconnect();
  Settle();
  EXPECT_EQ(FileOf("web"), Text("3", "3", ""));
  node_.Remove(former);
  Settle();
  EXPECT_EQ(FileOf("web"), Text("3", "3", ""));
}

TEST_F(CpuFilesTest, WhatIsKeptEndsWithItsContainers) {
  for (int i = 0; i < 50; ++i) {
    const std::string name = fmt::format("c{}", i);
    Begun begun = Begin(TestNode::Request(AddPod(name, kBurstable), name, 100));
    const ContainerId id = Finish(begun);
    node_.runtime.AnswerAll();
    node_.Start(id);
    i % 2 == 0 ? node_.Remove(id) : node_.manager().PodRemoved(node_.Known(id)->pod_id);
  }
  Settle();
  EXPECT_THAT(Directories(), IsEmpty());
  EXPECT_EQ(files_->size(), 0U);
}

}  // namespace
}  // namespace resmgr
