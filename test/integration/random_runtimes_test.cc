// SPDX-License-Identifier: Apache-2.0
// Random pods over three runtimes that die and come back at random.
#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "test/integration/daemon_fixture.h"
#include "test/support/seed.h"

namespace resmgr::test {
namespace {

class RandomRuntimesTest : public DaemonTest {
 protected:
  static constexpr size_t kRuntimes = 3;

  struct Life {
    size_t runtime = 0;
    std::string pod;
    int cpus = 0;  // number of its exclusive CPUs
  };

  RandomRuntimesTest() {
    std::ofstream file(Path("node.yaml"));
    file << "policy: {Active: static, ReservedResources: {CPU: 1}}\nruntimes: {";
    for (size_t i = 1; i < kRuntimes; ++i)
      file << "r" << i << ": {Socket: " << SocketOf(i) << "}, ";
    file << "}\nruntimeClasses: {";
    for (size_t i = 1; i < kRuntimes; ++i)
      file << HandlerOf(i) << ": {Runtime: r" << i << (i == 2 ? ", Handler: runc" : "") << "}, ";
    file << "}\n";
  }

  std::string SocketOf(size_t i) const {
    return i == 0 ? RuntimeSocket() : Path(fmt::format("r{}.sock", i));
  }
  // The handler of the last one is an alias.
  static std::string HandlerOf(size_t i) { return i == 0 ? "" : fmt::format("h{}", i); }
  size_t Random(size_t below) {
    return std::uniform_int_distribution<size_t>(0, below - 1)(random_);
  }

  void Start(size_t i) {
    ASSERT_THAT(runtimes_[i]->Start(SocketOf(i)), IsOk());
    up_[i] = true;
  }
  void KillOrStart(size_t i) {
    if (!up_[i]) return Start(i);
    runtimes_[i]->Stop();
    up_[i] = false;
    // Waits, so that no call meets a connection that is just breaking.
    EXPECT_TRUE(Eventually([this] {
      cri::ListContainersResponse list;
      return !client_->Unary("ListContainers", cri::ListContainersRequest(), &list).ok();
    }));
  }

  int Taken() const {
    int cpus = 0;
    for (const auto& [id, life] : lives_)
      cpus += life.cpus;
    return cpus;
  }

  // A container that fits is never refused.
  void Create() {
    const size_t i = Random(kRuntimes);
    const std::string name = fmt::format("c{}", ++last_name_);
    const int cpus = std::min(static_cast<int>(Random(4)), kCpus - 1 - Taken());
    const auto pod = cpus > 0 ? MakeGuaranteedPod(name) : MakeBestEffortPod(name);
    const auto pod_id = client_->RunPod(pod, HandlerOf(i));
    EXPECT_EQ(pod_id.ok(), up_[i]) << Describe(pod_id.status());
    if (!pod_id.ok()) return;
    const std::string id = Ok(client_->CreateContainer(
        *pod_id, pod,
        cpus > 0 ? MakeGuaranteedContainer(name, cpus) : MakeBestEffortContainer(name)));
    lives_[id] = {.runtime = i, .pod = *pod_id, .cpus = cpus};
  }

  void Remove() {
    if (lives_.empty()) return;
    const auto it = std::next(lives_.begin(), static_cast<std::ptrdiff_t>(Random(lives_.size())));
    if (!up_[it->second.runtime]) {
      EXPECT_THAT(client_->RemoveContainer(it->first), HasCode(StatusCode::kUnavailable));
      return;
    }
    EXPECT_THAT(client_->RemoveContainer(it->first), IsOk());
    EXPECT_THAT(client_->RemovePod(it->second.pod), IsOk());
    lives_.erase(it);
  }

  // The owner of each container answers, or the call reports that it is away, never that the
  // container is not found.
  void Ask() {
    if (lives_.empty()) return;
    const auto it = std::next(lives_.begin(), static_cast<std::ptrdiff_t>(Random(lives_.size())));
    const auto status = client_->ContainerStatus(it->first);
    if (up_[it->second.runtime]) {
      ASSERT_THAT(status, IsOk());
      EXPECT_EQ(status->id(), it->first);
    } else {
      EXPECT_THAT(status, HasCode(StatusCode::kUnavailable));
    }
  }

  void List() {
    cri::ListContainersResponse list;
    const auto status = client_->Unary("ListContainers", cri::ListContainersRequest(), &list);
    const bool all_up = std::ranges::all_of(up_, [](bool up) { return up; });
    EXPECT_EQ(status.ok(), all_up) << status.error_message();
    if (!status.ok()) {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
      return;
    }
    std::set<std::string> listed;
    for (const cri::Container& container : list.containers())
      listed.insert(container.id());
    std::set<std::string> expected;
    for (const auto& [id, life] : lives_)
      expected.insert(id);
    EXPECT_EQ(listed, expected);
    ListPods();
  }

  // Expects the pods with the handlers that were named for them.
  void ListPods() {
    cri::ListPodSandboxResponse list;
    ASSERT_TRUE(client_->Unary("ListPodSandbox", cri::ListPodSandboxRequest(), &list).ok());
    std::map<std::string, std::string> listed;
    for (const cri::PodSandbox& pod : list.items())
      listed[pod.id()] = pod.runtime_handler();
    for (const auto& [id, life] : lives_)
      EXPECT_EQ(listed[life.pod], HandlerOf(life.runtime)) << life.pod;
    for (const auto& [id, sandbox] :
         runtimes_[2]->WithStore([](CriStore& store) { return store.sandboxes(); }))
      EXPECT_EQ(sandbox.runtime_handler, "runc");
  }

  // Terminated and not killed: a killed daemon may lack notes of its last milliseconds.
  void RestartDaemon() {
    if (daemon_ != nullptr) {
      ASSERT_TRUE(daemon_->Terminate().ok());
    }
    StartDaemon(Flags({"-config", Path("node.yaml")}));
    client_ = std::make_unique<CriClient>(Relayed());
  }

  // No two containers have a CPU of their own in common, whichever runtimes have them.
  void ExpectDisjoint() {
    CpuSet taken;
    for (const auto& [id, life] : lives_) {
      const auto container = runtimes_[life.runtime]->FindContainer(id);
      ASSERT_TRUE(container.has_value()) << "it is at another runtime";
      if (life.cpus == 0) continue;
      const CpuSet cpus = *CpuSet::Parse(container->resources.cpuset_cpus());
      EXPECT_EQ(cpus.size(), life.cpus);
      EXPECT_FALSE(cpus.Intersects(taken)) << cpus.ToString() << " of " << taken.ToString();
      taken = taken | cpus;
    }
  }

  std::mt19937_64 random_;
  FakeRuntime second_{{.store = {.first_id = 1'000'000}}};
  FakeRuntime third_{{.store = {.first_id = 2'000'000}}};
  std::array<FakeRuntime*, kRuntimes> runtimes_{&runtime_, &second_, &third_};
  std::array<bool, kRuntimes> up_{};
  std::map<std::string, Life> lives_;
  std::unique_ptr<CriClient> client_;
  int last_name_ = 0;
};

TEST_F(RandomRuntimesTest, EveryIdIsItsOwnersAndNoListIsIncomplete) {
  const uint64_t seed = SeedOr(7);
  SCOPED_TRACE(Repeat(seed));
  random_.seed(seed);
  StartRuntime();
  up_[0] = true;
  for (size_t i = 1; i < kRuntimes; ++i)
    Start(i);
  RestartDaemon();
  ASSERT_TRUE(Eventually([this] {
    cri::ListContainersResponse list;
    return client_->Unary("ListContainers", cri::ListContainersRequest(), &list).ok();
  }));
  for (int step = 0; step < 300 && !HasFailure(); ++step) {
    SCOPED_TRACE(step);
    const size_t what = Random(100);
    if (what < 35) {
      Create();
    } else if (what < 60) {
      Remove();
    } else if (what < 80) {
      Ask();
    } else if (what < 92) {
      List();
    } else if (what < 98) {
      KillOrStart(Random(kRuntimes));
    } else {
      RestartDaemon();
    }
    ExpectDisjoint();
  }
  // Accounts return to zero.
  for (size_t i = 0; i < kRuntimes; ++i) {
    if (!up_[i]) Start(i);
  }
  for (const auto& [id, life] : lives_) {
    EXPECT_THAT(client_->RemoveContainer(id), IsOk());
    EXPECT_THAT(client_->RemovePod(life.pod), IsOk());
  }
  lives_.clear();
  List();
  const auto pod = MakeGuaranteedPod("all");
  const std::string pod_id = Ok(client_->RunPod(pod, "h1"));
  EXPECT_THAT(client_->CreateContainer(pod_id, pod, MakeGuaranteedContainer("all", kCpus - 1)),
              IsOk());
}

}  // namespace
}  // namespace resmgr::test
