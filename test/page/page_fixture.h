// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pkg/base/units.h"
#include "pkg/topology/cpu_set.h"
#include "test/integration/daemon_fixture.h"
#include "test/page/browser.h"

namespace resmgr::test {

// A daemon with its page, and one browser for all tests of a suite.
class PageTest : public DaemonTest {
 protected:
  using Json = Browser::Json;

  // Two packages of two dies, each with its memory and two groups of eight cores: 128 CPUs.
  static constexpr const char* kMachine =
      "synthetic:package:2 die:2 numa:1(memory=68719476736) l3:2 core:8 pu:2";
  static constexpr int kContainers = 40;
  static constexpr int kShop = 400;
  static constexpr int kMostCpus = 512;
  static constexpr Bytes kGiB{int64_t{1} << 30};

  PageTest() : DaemonTest(kMostCpus) {}

  static void SetUpTestSuite();
  static void TearDownTestSuite() { browser_.reset(); }
  void SetUp() override;

  // Starts a daemon with policy topology-aware; port 0 is any.
  void StartWithPage(const std::string& machine = kMachine, int port = 0);
  // Starts a daemon with flags for the policy.
  void StartWithPolicy(const std::vector<std::string>& policy, const std::string& machine,
                       int port = 0);
  // kContainers pods: guaranteed ones, most of them with CPUs of their own, burstable and best
  // effort ones.
  void RunMany();
  // A shop of 400 pods, 80 of them with CPUs of their own.
  void RunShop();
  void RunGuaranteed(const std::string& name, MilliCpu cpus, Bytes memory);
  void RunShared(const std::string& name, MilliCpu request);
  // Resizes a guaranteed container in place as a kubelet does.
  void ResizeGuaranteed(const std::string& name, MilliCpu cpus, Bytes memory);
  // Opens the page, and waits until it shows `containers` containers.
  void OpenPage(int containers);
  // The page of a daemon with the pods of RunMany.
  void OpenPageOfMany() {
    StartWithPage();
    RunMany();
    OpenPage(kContainers);
  }

  std::string Origin() const { return "http://127.0.0.1:" + std::to_string(port_); }
  // The value of an expression in the page; null after a failure, which fails the test.
  Json Value(const std::string& expression);
  // Waits until the expression is true in the page.
  bool Becomes(const std::string& expression);
  void Press(const std::vector<std::string>& keys);
  std::string Text(const std::string& selector);
  int Count(const std::string& selector);
  // Expects that no other server was asked, the page's content policy held, and no script failed.
  void ExpectWithinThePage();
  // The CPUs that the page marks as the chosen container's.
  CpuSet Marked() { return CpusOf(".cpu.chosen"); }
  CpuSet CpusOf(const std::string& selector);
  std::string Focused() { return Value("document.activeElement.textContent").get<std::string>(); }
  // Into the directory that RESMGR_SCREENSHOTS names, if it does.
  void TakeScreenshot(const std::string& name);

  static std::unique_ptr<Browser> browser_;
  int port_ = 0;
  std::map<std::string, Running> running_;  // by the names of their pods
};

}  // namespace resmgr::test
