// SPDX-License-Identifier: Apache-2.0
#include "test/e2e/node_fixture.h"

#include <chrono>
#include <cstdlib>
#include <iostream>

#include <gmock/gmock.h>

#include "pkg/topology/machine_source.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {

const Machine& NodeTest::TheMachine() {
  static const Machine* const kMachine = [] {
    StatusOr<Machine> machine = LoadMachine("live");
    if (!machine.ok()) {
      std::cerr << Describe(machine.status()) << "\n";
      std::abort();
    }
    return new Machine(*std::move(machine));
  }();
  return *kMachine;
}

void NodeTest::Open(const Node::Options& options) {
  ASSERT_GE(All().size(), 2) << "these tests need two CPUs";
  ASSERT_TRUE(All().Contains(0)) << "these tests reserve CPU 0";
  node_ = Must(Node::OnContainerd(options));
}

void NodeTest::TearDown() {
  if (node_ == nullptr) return;
  node_->watch().LookAgain();
  EXPECT_THAT(node_->watch().violations(), ::testing::IsEmpty());
  if (HasFailure()) GTEST_LOG_(INFO) << node_->RelayLog() << node_->containerd().Log();
}

RunningPod NodeTest::Run(const Workload& workload) {
  auto pod = node_->Run(workload);
  EXPECT_TRUE(pod.ok()) << workload.name << ": " << Describe(pod.status());
  return pod.ok() ? *std::move(pod) : RunningPod{};
}

void NodeTest::Resize(const Workload& workload, RunningPod* pod) {
  const Status resized = node_->Resize(workload, pod);
  EXPECT_TRUE(resized.ok()) << workload.name << ": " << Describe(resized);
}

void NodeTest::Remove(const RunningPod& pod) {
  const Status removed = node_->Remove(pod);
  EXPECT_TRUE(removed.ok()) << pod.workload.name << ": " << Describe(removed);
}

std::string NodeTest::CpusOf(const RunningPod& pod) const {
  return containerd().CgroupCpus(pod.container_id);
}

std::string NodeTest::MemsOf(const RunningPod& pod) const {
  return containerd().CgroupMems(pod.container_id);
}

CpuSet NodeTest::CpuSetOf(const RunningPod& pod) const {
  const StatusOr<CpuSet> cpus = CpuSet::Parse(CpusOf(pod));
  EXPECT_TRUE(cpus.ok() && !cpus->empty()) << pod.workload.name << " on \"" << CpusOf(pod) << '"';
  return cpus.value_or(CpuSet());
}

::testing::AssertionResult NodeTest::HasShares(const RunningPod& pod, int64_t shares) const {
  const int64_t actual = containerd().CgroupShares(pod.container_id, shares);
  if (actual == shares) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << pod.workload.name << " has CPU shares " << actual;
}

::testing::AssertionResult NodeTest::HasQuota(const RunningPod& pod, int64_t microseconds) const {
  const int64_t actual = containerd().CgroupQuota(pod.container_id);
  if (actual == microseconds) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << pod.workload.name << " has quota " << actual;
}

CpuSet NodeTest::CpuSetToBe(const RunningPod& pod) const {
  cri::ContainerStatusRequest request;
  request.set_container_id(pod.container_id);
  request.set_verbose(true);
  cri::ContainerStatusResponse response;
  const grpc::Status status = node_->runtime().Unary("ContainerStatus", request, &response);
  if (status.error_code() == grpc::StatusCode::NOT_FOUND) return {};
  EXPECT_TRUE(status.ok()) << status.error_message();
  const auto info = response.info().find("info");
  if (info == response.info().end()) return {};
  const auto json = nlohmann::json::parse(info->second, nullptr, /*allow_exceptions=*/false);
  const nlohmann::json::json_pointer at("/runtimeSpec/linux/resources/cpu/cpus");
  return json.contains(at) ? CpuSet::Parse(json.at(at).get<std::string>()).value_or(CpuSet())
                           : CpuSet();
}

nlohmann::json NodeTest::Ctl(const Node::Words& words) const {
  const StatusOr<std::string> output = node_->Ctl(words);
  EXPECT_TRUE(output.ok()) << Describe(output.status()) << node_->RelayLog();
  return nlohmann::json::parse(output.value_or("null"), nullptr, /*allow_exceptions=*/false);
}

void NodeTest::NeedsNewerThan16(std::string_view what) {
  cri::VersionResponse version;
  ASSERT_TRUE(node_->runtime().Unary("Version", cri::VersionRequest(), &version).ok());
  // "1.6.20~ds1", "v1.6.20"
  if (version.runtime_version().find("1.6.") > 1) return;
  GTEST_SKIP() << "containerd " << version.runtime_version() << " has no " << what
               << "; scripts/test-runtimes fetches one that has";
}

void NodeTest::ExpectOn(const RunningPod& pod, const CpuSet& cpus) const {
  const Status there =
      WaitUntil("the container moves", kPatience, [&] { return CpusOf(pod) == cpus.ToString(); });
  EXPECT_TRUE(there.ok()) << pod.workload.name << " is on " << CpusOf(pod) << ", not on "
                          << cpus.ToString();
}

}  // namespace resmgr::test
