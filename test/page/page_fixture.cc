// SPDX-License-Identifier: Apache-2.0
#include "test/page/page_fixture.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>

#include <fmt/format.h>

namespace resmgr::test {

std::unique_ptr<Browser> PageTest::browser_;

void PageTest::SetUpTestSuite() {
  auto browser = Browser::Start();
  ASSERT_THAT(browser, IsOk());
  browser_ = *std::move(browser);
}

void PageTest::SetUp() {
  ASSERT_NE(browser_, nullptr);
  ASSERT_THAT(browser_->Resize(1440, 1010), IsOk());
  ASSERT_THAT(browser_->PreferColours("light"), IsOk());
  // Drops the requests of tests before this one.
  ASSERT_THAT(browser_->Open("about:blank"), IsOk());
  ASSERT_THAT(browser_->TakeConsole(), IsOk());
  ASSERT_THAT(browser_->TakeRequests(), IsOk());
}

void PageTest::StartWithPage(const std::string& machine, int port) {
  StartWithPolicy({"-policy", "topology-aware", "-reserved-resources", "CPU=2"}, machine, port);
}

void PageTest::StartWithPolicy(const std::vector<std::string>& policy, const std::string& machine,
                               int port) {
  if (daemon_ == nullptr) StartRuntime();
  if (HasFatalFailure()) return;
  std::vector<std::string> flags = Flags({"-topology", machine, "-metrics-address",
                                          fmt::format("127.0.0.1:{}", port), "-metrics-page"});
  flags.insert(flags.end(), policy.begin(), policy.end());
  StartDaemon(flags);
  if (HasFatalFailure()) return;
  constexpr std::string_view kBefore = "metrics are served on port ";
  ASSERT_TRUE(Logged(kBefore));
  const std::string log = daemon_->Log();
  const size_t at = log.rfind(kBefore) + kBefore.size();
  std::from_chars(log.data() + at, log.data() + log.size(), port_);
}

void PageTest::RunGuaranteed(const std::string& name, MilliCpu cpus, Bytes memory) {
  CriClient client = Relayed();
  running_[name] =
      Run(client, MakeGuaranteedPod(name),
          MakeContainer({.cpu_request = cpus, .cpu_limit = cpus, .memory_limit = memory}));
}

void PageTest::RunShared(const std::string& name, MilliCpu request) {
  CriClient client = Relayed();
  running_[name] =
      request.value == 0
          ? Run(client, MakeBestEffortPod(name), MakeBestEffortContainer("main"))
          : Run(client, MakeBurstablePod(name), MakeBurstableContainer("main", request));
}

void PageTest::RunMany() {
  int number = 0;
  const auto name = [&number](const char* kind) { return fmt::format("{}-{}", kind, ++number); };
  for (const int cpus : {8, 4, 6, 2, 12, 4, 2, 3, 6, 1, 2, 4})
    RunGuaranteed(name("database"), MilliCpu{1000 * cpus}, Bytes{cpus * kGiB.value});
  for (int i = 0; i < 4; ++i)
    RunGuaranteed(name("queue"), MilliCpu{500}, kGiB);
  for (int i = 0; i < 14; ++i)
    RunShared(name("web"), MilliCpu{200 + 100 * i});
  while (number < kContainers)
    RunShared(name("batch"), MilliCpu{0});
}

void PageTest::RunShop() {
  struct Kind {
    const char* name;
    int cpus;
  };
  static constexpr std::array<Kind, 5> kOwn = {
      {{"cache", 2}, {"payments", 1}, {"orders-db", 4}, {"recommender", 8}, {"upf", 6}}};
  static constexpr std::array<const char*, 4> kShared = {"web", "worker", "agent", "report"};
  for (size_t i = 0; i < kShop; ++i) {
    if (i % 5 == 0) {
      const Kind& kind = kOwn[i / 5 % kOwn.size()];
      RunGuaranteed(fmt::format("{}-{}", kind.name, i / 25), MilliCpu{1000 * kind.cpus},
                    Bytes{kind.cpus * kGiB.value});
    } else {
      RunShared(fmt::format("{}-{}", kShared[i % kShared.size()], i),
                MilliCpu{static_cast<int64_t>(i % 3) * 200});
    }
  }
}

void PageTest::ResizeGuaranteed(const std::string& name, MilliCpu cpus, Bytes memory) {
  const cri::ContainerConfig container =
      MakeContainer({.cpu_request = cpus, .cpu_limit = cpus, .memory_limit = memory});
  CriClient client = Relayed();
  EXPECT_THAT(client.UpdateContainer(running_[name].container, container.linux().resources()),
              IsOk());
}

void PageTest::OpenPage(int containers) {
  ASSERT_THAT(browser_->Open(Origin() + "/page/"), IsOk());
  ASSERT_TRUE(Becomes(
      fmt::format("document.querySelectorAll('#containers tbody tr').length === {}", containers)))
      << Text("body");
}

PageTest::Json PageTest::Value(const std::string& expression) {
  const auto value = browser_->Run("return " + expression);
  EXPECT_THAT(value, IsOk()) << expression;
  return value.ok() ? *value : Json();
}

bool PageTest::Becomes(const std::string& expression) {
  Status error;
  const bool is_true = Eventually([&] {
    const auto value = browser_->Run("return Boolean(" + expression + ")");
    error = value.status();
    return !value.ok() || *value == true;
  });
  EXPECT_THAT(error, IsOk()) << expression;
  return is_true && error.ok();
}

void PageTest::Press(const std::vector<std::string>& keys) {
  EXPECT_THAT(browser_->Press(keys), IsOk());
}

std::string PageTest::Text(const std::string& selector) {
  const Json text = Value(fmt::format(
      "document.querySelector({})?.textContent ?? 'no such element'", Json(selector).dump()));
  return text.is_string() ? text.get<std::string>() : "";
}

int PageTest::Count(const std::string& selector) {
  const Json count =
      Value(fmt::format("document.querySelectorAll({}).length", Json(selector).dump()));
  return count.is_number() ? count.get<int>() : -1;
}

void PageTest::ExpectWithinThePage() {
  std::vector<std::string> requests;
  // A page without containers may look ready before it has asked for data.
  EXPECT_TRUE(Eventually([&] {
    const auto more = browser_->TakeRequests();
    EXPECT_THAT(more, IsOk());
    if (more.ok()) requests.insert(requests.end(), more->begin(), more->end());
    return !more.ok() || std::ranges::count(requests, Origin() + "/page/data/status") > 0;
  })) << testing::PrintToString(requests);
  EXPECT_THAT(requests, testing::Each(testing::AnyOf(testing::StartsWith(Origin() + "/page"),
                                                     Origin() + "/", "about:blank")));
  const auto console = browser_->TakeConsole();
  ASSERT_THAT(console, IsOk());
  // The first question about use may wait for a sample longer than the server does.
  for (const std::string& line : *console)
    EXPECT_THAT(line, testing::ContainsRegex("/page/data/(top|nodes|busy) .* 503"));
}

CpuSet PageTest::CpusOf(const std::string& selector) {
  CpuSet cpus;
  for (const Json& cpu : Value("[...document.querySelectorAll(" + Json(selector).dump() +
                               ")].map((cell) => Number(cell.dataset.cpu))")) {
    cpus.Add(cpu.get<int>());
  }
  return cpus;
}

void PageTest::TakeScreenshot(const std::string& name) {
  const char* const directory = std::getenv("RESMGR_SCREENSHOTS");
  if (directory == nullptr) return;
  const auto image = browser_->Screenshot();
  ASSERT_THAT(image, IsOk());
  std::ofstream(fmt::format("{}/{}.png", directory, name), std::ios::binary) << *image;
}

}  // namespace resmgr::test
