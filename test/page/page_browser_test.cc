// SPDX-License-Identifier: Apache-2.0
// The page in a real browser: its view of a node of 128 CPUs with 40 containers, and its use.
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "pkg/topology/cpu_set.h"
#include "test/page/page_fixture.h"

namespace resmgr::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

class BrowserTest : public PageTest {
 protected:
  std::string Row(const std::string& pod) {
    return Value(fmt::format("[...document.querySelectorAll('#containers tbody tr')]"
                             ".find((row) => row.textContent.includes('default/{}/main'))"
                             "?.textContent ?? ''",
                             pod))
        .get<std::string>();
  }
};

TEST_F(BrowserTest, ShowsTheMachineAndWhatRunsWhere) {
  OpenPageOfMany();
  EXPECT_EQ(Count("#machine .package"), 2);
  EXPECT_EQ(Count("#machine .die"), 4);
  EXPECT_EQ(Count("#machine .node"), 4);
  EXPECT_EQ(Count("#machine .l3"), 8);
  EXPECT_EQ(Count("#machine .core"), 64);
  EXPECT_EQ(Count("#machine .cpu"), 128);
  int exclusive = 0;
  for (const auto& [pod, running] : running_) {
    const CpuSet at_runtime = CpusAtRuntime(running.container);
    if (!pod.starts_with("database")) continue;
    exclusive += at_runtime.size();
    for (const int cpu : at_runtime) {
      EXPECT_THAT(Value(fmt::format("document.querySelector('[data-cpu=\"{}\"]').title", cpu)),
                  testing::ResultOf([](const Json& title) { return title.get<std::string>(); },
                                    HasSubstr("exclusive to default/" + pod + "/main")));
    }
    EXPECT_THAT(Row(pod), HasSubstr(at_runtime.ToString()));
  }
  EXPECT_EQ(exclusive, 54);
  EXPECT_EQ(Count("[class*='cpu own']"), exclusive);
  EXPECT_EQ(Count(".cpu.reserved"), 2);
  EXPECT_EQ(Count(".cpu.shared"), 128 - exclusive - 2);
  EXPECT_EQ(Count("#memory tbody tr"), 4);
  EXPECT_THAT(Text("#memory"), HasSubstr("64 GiB"));
  EXPECT_THAT(Text("#history"), HasSubstr("default/batch-40/main"));
  EXPECT_THAT(Text("#state"), HasSubstr("runtime connected"));
  ExpectWithinThePage();
}

TEST_F(BrowserTest, ShowsAResizeWithoutBeingLoadedAgain) {
  OpenPageOfMany();
  const CpuSet before = CpusAtRuntime(running_["database-2"].container);
  ASSERT_EQ(before.size(), 4);
  ResizeGuaranteed("database-2", MilliCpu{10'000}, Bytes{10 * kGiB.value});
  ASSERT_TRUE(
      Eventually([&] { return CpusAtRuntime(running_["database-2"].container).size() == 10; }));
  const CpuSet after = CpusAtRuntime(running_["database-2"].container);
  ASSERT_TRUE(Becomes("document.querySelectorAll(\"[class*='cpu own']\").length === 60"));
  EXPECT_THAT(Row("database-2"), HasSubstr(after.ToString()));
  EXPECT_THAT(Text("#history tbody tr"), HasSubstr("default/database-2/main"));
  ASSERT_THAT(browser_->Click("button[data-key^='" + running_["database-2"].container + "']"),
              IsOk());
  ASSERT_TRUE(Becomes("document.querySelector('#details-body dl')"));
  EXPECT_EQ(Marked(), after);
  ExpectWithinThePage();
}

TEST_F(BrowserTest, ExplainsAContainerThatIsClicked) {
  OpenPageOfMany();
  const Running& chosen = running_["database-1"];
  EXPECT_EQ(Value("document.querySelector('#details').hidden"), true);
  ASSERT_THAT(browser_->Click("button[data-key='" + chosen.container + "']"), IsOk());
  ASSERT_TRUE(Becomes("document.querySelector('#details-body dl')"));
  EXPECT_EQ(Text("#details-heading"), "default/database-1/main");
  EXPECT_THAT(Text("#details-body"), HasSubstr("CPU request8 CPUs"));
  EXPECT_THAT(Text("#details-body"), HasSubstr(chosen.container));
  EXPECT_THAT(Text("#details-body"), HasSubstr("Decided by"));
  EXPECT_EQ(Marked(), CpusAtRuntime(chosen.container));
  // A CPU leads to its container, too.
  const int cpu = CpusAtRuntime(running_["database-5"].container).First();
  ASSERT_THAT(browser_->Click(fmt::format("[data-cpu='{}']", cpu)), IsOk());
  EXPECT_TRUE(
      Becomes("document.querySelector('#details-heading').textContent.includes('database-5')"));
  // One that ends takes its explanation along.
  CriClient client = Relayed();
  ASSERT_THAT(client.StopContainer(running_["database-5"].container), IsOk());
  ASSERT_THAT(client.RemoveContainer(running_["database-5"].container), IsOk());
  EXPECT_TRUE(Becomes("document.querySelector('#details').hidden"));
  EXPECT_EQ(Count("#containers tbody tr"), kContainers - 1);
  ExpectWithinThePage();
}

// By a tree of the kernel's files in which processes are killed while the page is open.
TEST_F(BrowserTest, TellsEventsOfMemoryWhereTheContainerIs) {
  const auto put = [this](const std::string& name, const std::string& text) {
    const std::filesystem::path file = std::filesystem::path(Path("root")) / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file.string() + ".new") << text;
    std::filesystem::rename(file.string() + ".new", file);
  };
  put("sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
  std::ofstream(Path("node.yaml")) << "policy: {Active: topology-aware, ReservedResources: {CPU: "
                                      "2}}\nusage: {Interval: 1s}\n";
  StartWithPolicy({"-config", Path("node.yaml"), "-host-root", Path("root")}, kMachine);
  RunGuaranteed("db", MilliCpu{2000}, kGiB);
  const std::string directory = "sys/fs/cgroup" + MakeGuaranteedPod("db").linux().cgroup_parent() +
                                "/" + running_["db"].container;
  put(directory + "/memory.current", "8192\n");
  put(directory + "/memory.max", "16384\n");
  put(directory + "/memory.events", "high 4\noom 0\noom_kill 0\n");
  OpenPage(1);
  const auto cell = [](const char* column) {
    return fmt::format(
        "document.querySelector('#containers tbody tr').cells[[...document.querySelectorAll("
        "'#containers thead th')].findIndex((th) => th.dataset.order === '{}')]",
        column);
  };
  ASSERT_TRUE(Becomes(cell("Killed") + ".textContent === '0'"));
  EXPECT_EQ(Value(cell("Killed") + ".classList.contains('warn')"), false);
  EXPECT_EQ(Value(cell("Memory high") + ".textContent"), "0") << "none since the last sample";
  put(directory + "/memory.events", "high 4\noom 2\noom_kill 2\n");
  ASSERT_TRUE(Becomes(cell("Killed") + ".textContent === '2'"));
  EXPECT_EQ(Value(cell("Killed") + ".classList.contains('warn')"), true);
  EXPECT_TRUE(
      Becomes("document.querySelector('#problems').textContent.includes("
              "'2 processes of default/db/main were killed for want of memory')"));
  ASSERT_THAT(browser_->Click("button[data-key='" + running_["db"].container + "']"), IsOk());
  ASSERT_TRUE(Becomes("document.querySelector('#details-body dl')"));
  EXPECT_THAT(Text("#details-body"),
              AllOf(HasSubstr("Memory events2 processes killed since its start"),
                    HasSubstr("by its limit of 16 KiB")));
  ExpectWithinThePage();
}

TEST_F(BrowserTest, CanBeUsedByKeyboardAlone) {
  OpenPageOfMany();
  Press({Browser::kTab});
  EXPECT_EQ(Focused(), "Skip to the containers");
  // Search, four buttons, and then the first CPU.
  for (int i = 0; i < 5; ++i)
    Press({Browser::kTab});
  EXPECT_EQ(Focused(), "Open simulation…");
  Press({Browser::kTab});
  EXPECT_EQ(Focused(), "0") << "the first CPU";
  Press({Browser::kRight, Browser::kRight, Browser::kLeft});
  EXPECT_EQ(Focused(), "1");
  Press({Browser::kDown});
  const int below = std::stoi(Focused());
  EXPECT_GT(below, 1);
  Press({Browser::kUp});
  EXPECT_EQ(Focused(), "1");
  Press({Browser::kEnd});
  EXPECT_EQ(Focused(), "127");
  Press({Browser::kHome, Browser::kEnter});
  EXPECT_TRUE(Becomes("document.querySelector('#cpu-text').textContent.startsWith('CPU 0, ')"));
  Press({Browser::kEscape});
  Press({"/", "w", "e", "b", "-", "2", "0"});
  EXPECT_EQ(Value("document.activeElement.id"), "filter");
  EXPECT_TRUE(Becomes("document.querySelectorAll('#containers tbody tr').length === 1"));
  Press({Browser::kDown});
  EXPECT_EQ(Focused(), "default/web-20/main");
  Press({Browser::kEnter});
  EXPECT_TRUE(Becomes("document.activeElement.id === 'details-heading'"));
  EXPECT_EQ(Focused(), "default/web-20/main");
  Press({Browser::kEscape});
  EXPECT_EQ(Value("document.querySelector('#details').hidden"), true);
  EXPECT_EQ(Value("document.activeElement.dataset.key"), running_["web-20"].container);
  // The table is drawn anew when something changes, and the focus stays.
  RunShared("web-20b", MilliCpu{100});
  EXPECT_TRUE(Becomes("document.querySelectorAll('#containers tbody tr').length === 2"));
  EXPECT_EQ(Value("document.activeElement.dataset.key"), running_["web-20"].container);
  ExpectWithinThePage();
}

// Contrast by the Web Content Accessibility Guidelines 2.1, 1.4.3: 4.5 at least.
TEST_F(BrowserTest, FollowsTheColoursOfTheReadersSystemAndIsReadableInBoth) {
  OpenPageOfMany();
  std::set<std::string> grounds;
  for (const std::string scheme : {"light", "dark"}) {
    ASSERT_THAT(browser_->PreferColours(scheme), IsOk());
    grounds.insert(Value("getComputedStyle(document.body).backgroundColor").get<std::string>());
    const auto worst = browser_->Run(R"(
      const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
      const light = (colour) => {
        const [r, g, b] = numbers(colour).map((part) => part / 255)
            .map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const groundOf = (element) => {
        for (let at = element; at; at = at.parentElement) {
          const colour = getComputedStyle(at).backgroundColor;
          if ((numbers(colour)[3] ?? 1) === 1) return colour;
        }
      };
      let worst = [99, ''];
      for (const element of document.querySelectorAll(
          '.cpu, .use, .names span, td, th, h1, h2, h3, h4, p, .quiet, dt, dd, strong, small, button, code, .l3 > span')) {
        const [a, b] = [light(getComputedStyle(element).color), light(groundOf(element))];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (contrast < worst[0]) worst = [contrast, element.outerHTML];
      }
      return worst;)");
    ASSERT_THAT(worst, IsOk());
    EXPECT_GE((*worst)[0].get<double>(), 4.5) << scheme << ": " << (*worst)[1];
  }
  EXPECT_EQ(grounds.size(), 2U);
}

TEST_F(BrowserTest, NamesOfPodsStayText) {
  StartWithPage();
  const std::string name = "<img src=x onerror=\"document.title='broken'\">";
  RunShared(name, MilliCpu{500});
  OpenPage(1);
  EXPECT_EQ(Text("#containers tbody button"), "default/" + name + "/main");
  ASSERT_THAT(browser_->Click("#containers tbody button"), IsOk());
  ASSERT_TRUE(Becomes("document.querySelector('#details-body dl')"));
  EXPECT_EQ(Text("#details-heading"), "default/" + name + "/main");
  EXPECT_THAT(Text("#history"), HasSubstr(name));
  EXPECT_EQ(Count("img, script:not([src])"), 0);
  EXPECT_THAT(Value("document.title").get<std::string>(), testing::EndsWith("· cri-resmgr"));
  ExpectWithinThePage();
}

// Shows that the effects that the other tests look for can be seen at all.
TEST_F(BrowserTest, TheBrowserKeepsThePageFromOtherServersAndInlineScripts) {
  StartWithPage();
  OpenPage(0);
  ExpectWithinThePage();
  ASSERT_THAT(browser_->Run("fetch('http://127.0.0.1:9/').catch(() => {});"
                            "const script = document.createElement('script');"
                            "script.append('document.title = 1'); document.body.append(script);"
                            "const style = document.createElement('style');"
                            "style.append('body { color: red }'); document.body.append(style);"),
              IsOk());
  EXPECT_THAT(Value("document.title").get<std::string>(), testing::EndsWith("· cri-resmgr"));
  const auto console = browser_->TakeConsole();
  ASSERT_THAT(console, IsOk());
  for (const char* const directive : {"connect-src", "TrustedScript", "style-src"})
    EXPECT_THAT(*console, Contains(HasSubstr(directive))) << directive;
  const auto inserted = browser_->Run("document.body.innerHTML = '<p>'");
  EXPECT_THAT(inserted, testing::Not(IsOk()));
}

TEST_F(BrowserTest, TellsThatTheDaemonDoesNotAnswerAndGoesOnWithTheNextOne) {
  StartWithPage();
  RunShared("web", MilliCpu{500});
  OpenPage(1);
  EXPECT_EQ(Value("document.querySelector('#problems').hidden"), true);
  const int port = port_;
  ASSERT_THAT(daemon_->Terminate(), IsOk());
  EXPECT_TRUE(
      Becomes("document.querySelector('#problems').textContent.includes("
              "'The daemon does not answer.')"));
  EXPECT_TRUE(Becomes("document.querySelector('#age-text').textContent.includes(' old')"));
  EXPECT_EQ(Value("document.body.classList.contains('old')"), true);
  EXPECT_EQ(Count("#containers tbody tr"), 1) << "what was known stays";
  // The page also works on another machine.
  StartWithPage("synthetic:package:1 core:4 pu:2", port);
  EXPECT_TRUE(Becomes("document.querySelectorAll('.cpu').length === 8"));
  EXPECT_TRUE(Becomes("document.querySelector('#problems').hidden"));
  EXPECT_TRUE(Becomes("document.querySelector('#age-text').textContent === 'live'"));
}

// The machine was read before, so its CPUs were online.
TEST_F(BrowserTest, ShowsCpusThatWentOffline) {
  StartWithPage();
  RunShared("web", MilliCpu{500});
  OpenPage(1);
  EXPECT_EQ(Count("#machine .cpu.offline"), 0);
  ASSERT_THAT(browser_->Run(R"(
      const real = window.fetch;
      window.fetch = async (url, options) => {
        const answer = await real(url, options);
        if (!String(url).endsWith('data/status')) return answer;
        return new Response(JSON.stringify({...await answer.json(), offline: '9'}));
      };)"),
              IsOk());
  EXPECT_TRUE(Becomes("document.querySelector('[data-cpu=\"9\"]').title.includes(': offline')"));
  EXPECT_EQ(Count("#machine .cpu.offline"), 1);
  EXPECT_THAT(Text("#uses"), HasSubstr("offline 1"));
}

TEST_F(BrowserTest, StandsStillWhilePaused) {
  StartWithPage();
  RunShared("web", MilliCpu{500});
  OpenPage(1);
  ASSERT_THAT(browser_->Click("#pause"), IsOk());
  EXPECT_EQ(Value("document.querySelector('#pause').getAttribute('aria-pressed')"), "true");
  // A request may be under way.
  std::this_thread::sleep_for(milliseconds(500));
  RunShared("more", MilliCpu{500});
  std::this_thread::sleep_for(milliseconds(1500));
  EXPECT_EQ(Count("#containers tbody tr"), 1);
  ASSERT_THAT(browser_->Click("#pause"), IsOk());
  EXPECT_TRUE(Becomes("document.querySelectorAll('#containers tbody tr').length === 2"));
}

TEST_F(BrowserTest, ShowsALargeNode) {
  constexpr int kMany = 500;
  StartWithPage("synthetic:package:2 numa:4 l3:2 core:16 pu:2");
  for (int i = 0; i < kMany; ++i) {
    const std::string name = fmt::format("pod-{}", i);
    i % 5 == 0 ? RunGuaranteed(name, MilliCpu{2000}, Bytes{1 << 20})
               : RunShared(name, MilliCpu{100});
  }
  OpenPage(kMany);
  EXPECT_EQ(Count("#machine .cpu"), kMostCpus);
  EXPECT_EQ(Count("[class*='cpu own']"), 200);
  // Only the tables' own boxes may be wider than the window, at any width.
  for (const int width : {1440, 800, 390}) {
    ASSERT_THAT(browser_->Resize(width, 900), IsOk());
    EXPECT_LE(Value("document.documentElement.scrollWidth").get<int>(), width);
  }
  // The whole machine is on the first screen, with the latest moves below it.
  ASSERT_THAT(browser_->Resize(1440, 900), IsOk());
  EXPECT_LT(Value("document.querySelector('#machine').getBoundingClientRect().bottom").get<int>(),
            750);
  EXPECT_LT(Value("document.querySelector('#history tbody tr').getBoundingClientRect().bottom")
                .get<int>(),
            900);
  ExpectWithinThePage();
}

// The page opens what cri-resmgr-ctl simulate has written.
class SimulationTest : public PageTest {
 protected:
  // The program's output as a file.
  std::string Output(const std::string& name, const std::string& arguments) {
    std::string file = Path(name);
    const std::string command = RESMGR_BINARY_DIR "/cmd/cri-resmgr-ctl/cri-resmgr-ctl " + arguments;
    EXPECT_THAT(RunProgram({"sh", "-c", command + " >" + file}, Path("ctl.log"), kPatience),
                IsOk());
    return file;
  }
  std::string Machine() {
    return Output("machine.json", "topology -o json -topology '" + machine_ + "'");
  }
  std::string Simulation(const std::string& form = "json", const std::string& name = "result") {
    const std::string samples = RESMGR_SOURCE_DIR "/sample-configs/simulate/";
    return Output(name + ".json", "simulate -o " + form + " -topology '" + machine_ + "' -config " +
                                      samples + "config.yaml " + samples + "pods.yaml");
  }
  void Choose(const std::vector<std::string>& files) {
    ASSERT_THAT(browser_->ChooseFiles("#files", files), IsOk());
  }

  const std::string machine_ = "synthetic:package:2 numa:1 l3:1 core:10 pu:2";
};

TEST_F(SimulationTest, IsShownStepByStep) {
  StartWithPage();
  RunShared("web", MilliCpu{500});
  OpenPage(1);
  Choose({Machine(), Simulation()});
  ASSERT_TRUE(Becomes("!document.querySelector('#simulation').hidden"));
  EXPECT_EQ(Count(".cpu"), 40) << "the machine of the file";
  EXPECT_EQ(Value("document.querySelector('#problems').hidden"), true);
  EXPECT_THAT(Text("#step-text"), HasSubstr("config"));
  EXPECT_THAT(Text("#containers"), HasSubstr("shop/orders-db/database"));
  EXPECT_THAT(Text("#containers"), testing::Not(HasSubstr("shop/payments/payments")));
  EXPECT_EQ(Count("[class*='cpu own']"), 35) << "as its summary says";
  // By keyboard, from the slider that has the focus.
  EXPECT_EQ(Value("document.activeElement.id"), "step");
  Press({Browser::kHome});
  EXPECT_TRUE(Becomes("document.querySelectorAll('#containers tbody tr').length === 0"));
  Press({Browser::kRight, Browser::kRight, Browser::kRight});
  EXPECT_EQ(Count("#containers tbody tr"), 3);
  EXPECT_THAT(Text("#step-text"), HasSubstr("create shop/orders-db/restore"));
  ASSERT_THAT(browser_->Click("#containers tbody tr:last-child button"), IsOk());
  ASSERT_TRUE(Becomes("document.querySelector('#details-body dl')"));
  EXPECT_THAT(Text("#details-body"), HasSubstr("2-3"));
  ASSERT_THAT(browser_->Click("#step-back"), IsOk());
  EXPECT_TRUE(Becomes("document.querySelector('#details').hidden")) << "not there yet";
  // Returns to the node.
  ASSERT_THAT(browser_->Click("#back"), IsOk());
  EXPECT_TRUE(Becomes("document.querySelectorAll('.cpu').length === 128"));
  EXPECT_THAT(Text("#containers"), HasSubstr("default/web/main"));
}

TEST_F(SimulationTest, ShowsReservedCpusQosAndLimits) {
  StartWithPage();
  OpenPage(0);
  Choose({Simulation("page")});
  ASSERT_TRUE(Becomes("!document.querySelector('#simulation').hidden"));
  EXPECT_EQ(Count("#machine .cpu"), 40) << "the machine of the file";
  EXPECT_EQ(Value("document.querySelector('#problems').hidden"), true);
  EXPECT_GT(Count("#machine .cpu.reserved"), 0);
  const std::string row =
      Value(
          "[...document.querySelectorAll('#containers tbody tr')].find((row) => "
          "row.textContent.includes('shop/users-db/database')).textContent")
          .get<std::string>();
  EXPECT_THAT(row, testing::AllOf(HasSubstr("Guaranteed"), HasSubstr("4 GiB")));
  EXPECT_THAT(Text("#containers"), HasSubstr("BestEffort"));
}

TEST_F(SimulationTest, CpusOfClaimsHaveALookAndATextOfTheirOwn) {
  StartWithPage();
  OpenPage(0);
  const std::string samples = RESMGR_SOURCE_DIR "/sample-configs/simulate/";
  Choose(
      {Output("claims.json", "simulate -o page -topology 'synthetic:numa:2 core:4 pu:2' -config " +
                                 samples + "config.yaml " + samples + "claims.yaml")});
  ASSERT_TRUE(Becomes("!document.querySelector('#simulation').hidden"));
  EXPECT_EQ(Count("#machine .cpu.claim"), 4);
  EXPECT_EQ(Value("document.querySelector('[data-cpu=\"8\"]').title").get<std::string>(),
            "CPU 8, core 4, node 1: exclusive to shop/dsp/main, by claim shop/dsp-cpus");
  EXPECT_NE(Value("getComputedStyle(document.querySelector('.cpu.claim')).borderTopStyle"),
            Value("getComputedStyle(document.querySelector('.cpu.shared')).borderTopStyle"));
  EXPECT_THAT(Text("#uses"), HasSubstr("claims 4"));
  EXPECT_THAT(Text("#containers"), HasSubstr("shop/dsp-cpus/claim"));
  EXPECT_THAT(Text("#figures"), HasSubstr("1 container, 1 claim"));
  // Before a container carries it.
  Press({Browser::kHome});
  Press({Browser::kRight});
  EXPECT_TRUE(
      Becomes("document.querySelector('[data-cpu=\"8\"]').title"
              ".endsWith('held for claim shop/dsp-cpus')"));
  EXPECT_EQ(Count("#machine .cpu.claim"), 4);
  ASSERT_THAT(browser_->Click("[data-cpu='8']"), IsOk());
  ASSERT_TRUE(Becomes("document.querySelector('#details-body dl')"));
  EXPECT_EQ(Text("#details-heading"), "shop/dsp-cpus/claim");
  EXPECT_THAT(Text("#details-body"), HasSubstr("cpu-numa-1: CPUs 8-11"));
}

TEST_F(SimulationTest, IsShownBesideTheNodeAndBesideAnotherOne) {
  StartWithPage();
  RunGuaranteed("db", MilliCpu{4000}, kGiB);
  OpenPage(1);
  Choose({Simulation("page")});
  ASSERT_TRUE(Becomes("!document.querySelector('#simulation').hidden"));
  ASSERT_THAT(browser_->Click("#beside"), IsOk());
  ASSERT_TRUE(Becomes("document.querySelectorAll('#other .cpu').length === 128"));
  EXPECT_EQ(Count("#other .own"), 4);
  EXPECT_EQ(Count("#machine .cpu"), 40);
  ASSERT_THAT(browser_->ChooseFiles("#other-files", {Simulation("page", "second")}), IsOk());
  ASSERT_TRUE(Becomes("document.querySelectorAll('#other .cpu').length === 40"));
  EXPECT_THAT(Text("#other-heading"), HasSubstr("second.json"));
  EXPECT_EQ(Count("#other .own"), Count("#machine .own"));
  Press({Browser::kHome});
  EXPECT_TRUE(Becomes("document.querySelectorAll('#other .own').length === 0"));
  ASSERT_THAT(browser_->Click("#back"), IsOk());
  EXPECT_TRUE(Becomes("document.querySelector('#other-section').hidden"));
}

TEST_F(SimulationTest, NeedsNoMachine) {
  StartWithPage("synthetic:core:4 pu:1");
  OpenPage(0);
  Choose({Simulation()});
  ASSERT_TRUE(Becomes("!document.querySelector('#simulation').hidden"));
  EXPECT_EQ(Count(".cpu"), 40) << "in a row";
  EXPECT_THAT(Text("#problems"), HasSubstr("simulate -o page"));
}

TEST_F(SimulationTest, AContainerThatIsBoundToNoCpusMayRunOnAllOfThem) {
  StartWithPage();
  OpenPage(0);
  std::ofstream(Path("effect.json"))
      << R"({"step":"1","op":"create","pod":"shop/tool","container":"main","cpus":"","mems":"",)"
      << R"("exclusive":"","shares":512,"pool":"","reason":"as requested","changed":[]})" << '\n';
  Choose({Machine(), Path("effect.json")});
  ASSERT_TRUE(Becomes("!document.querySelector('#simulation').hidden"));
  ASSERT_THAT(browser_->Click("[data-cpu='7']"), IsOk());
  EXPECT_THAT(Text("#cpu-text"), HasSubstr("shop/tool/main may run there"));
  ASSERT_THAT(browser_->Click("button[data-key='shop/tool/main']"), IsOk());
  EXPECT_TRUE(Becomes("document.querySelectorAll('.cpu.chosen').length === 40"));
}

TEST_F(SimulationTest, OtherFilesAreRefusedByName) {
  StartWithPage();
  OpenPage(0);
  const auto expect_refused = [this](const std::string& content, const std::string& why) {
    std::ofstream(Path("other.json")) << content;
    Choose({Path("other.json")});
    EXPECT_TRUE(Becomes("document.querySelector('#problems').textContent.includes(" +
                        Json(why).dump() + ")"))
        << Text("#problems");
    EXPECT_EQ(Value("document.querySelector('#simulation').hidden"), true);
    // Choosing the same file again has to be a change.
    ASSERT_THAT(browser_->Run("document.querySelector('#files').value = ''"), IsOk());
  };
  expect_refused("STEP OP\n", "other.json, line 1 is not JSON");
  expect_refused("\n[]\n", "other.json, line 2 is neither an effect");
  expect_refused("null\n", "other.json, line 1 is neither an effect");
  expect_refused(R"({"op":"create","changed":[null]})", "other.json, line 1 is neither an effect");
  expect_refused("", "other.json has no effects");
}

}  // namespace
}  // namespace resmgr::test
