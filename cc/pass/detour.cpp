// SPDX-License-Identifier: MIT
//
// Ways of untrusted code around its checks, and out of its task. All are refused.
//
//   without marks   JANUS_NO_OPS, JANUS_OWN_OPS, the word of the checks
//   placed code     sections, constructors, functions chosen at load time, libraries in pragmas
//   built-ins       those that move the stack, the program counter or the thread pointer, that make
//                   the CPU wait, or that leave state behind which tasks share
//   definitions     names of the C library and of the compiler. The whole program would use them,
//                   and the code generator calls some of them where no mark is: a division in
//                   __udivti3 would call itself for ever.
#include "cc/pass/names.h"
#include "cc/pass/steps.h"
#include "cc/pass/versions.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/CallingConv.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <dlfcn.h>

using namespace llvm;

namespace janus
{

enum : uint64_t {
    divisionBits = 1024,   // of a division that nothing can stop
    volatileBytes = 65536, // of a copy that nothing can stop
    staticBytes = 16 << 20 // of the data of one object, which no budget pays for
};

class Detour
{
  public:
    Detour(Module &forModule, ModuleAnalysisManager &forAnalyses)
        : module(forModule), analyses(forAnalyses)
    {
    }

    void judgePlaces();
    void judgeData();
    void judgeMarkless();
    void judgeCode();
    void judgeDefinitions();

  private:
    void judgeInstruction(const Instruction &instruction);
    void judgeBuiltIn(const IntrinsicInst &call);
    bool isOfLibrary(const GlobalValue &value, StringRef name);

    void refuse(const Instruction *where, const Function *function, const Twine &text)
    {
        complain(module, where, function, "untrusted code must not " + text, true);
    }

    Module                &module;
    ModuleAnalysisManager &analyses;
};

// The section that `section`, an attribute or `#pragma clang section` names; or nothing.
static std::string sectionOf(const GlobalObject &object)
{
    if (object.hasSection()) return object.getSection().str();
    AttributeSet attributes;
    if (auto *function = dyn_cast<Function>(&object))
        return function->getFnAttribute("implicit-section-name").getValueAsString().str();
    if (auto *variable = dyn_cast<GlobalVariable>(&object)) attributes = variable->getAttributes();
    for (const char *kind : {"bss-section", "data-section", "rodata-section", "relro-section"})
        if (attributes.hasAttribute(kind))
            return attributes.getAttribute(kind).getValueAsString().str();
    return "";
}

void Detour::judgePlaces()
{
    for (const GlobalObject &object : module.global_objects()) {
        std::string section = sectionOf(object);
        if (section.empty() || section == "llvm.metadata") continue;
        refuse(nullptr, definedFunction(object),
               "name a section: " + object.getName() + " is in " + section);
    }
    for (const GlobalIFunc &chosen : module.ifuncs())
        refuse(nullptr, nullptr, "choose a function at load time: " + chosen.getName());
    for (const char *list : {"llvm.global_ctors", "llvm.global_dtors"})
        if (const GlobalVariable *entries = module.getNamedGlobal(list))
            if (entries->hasInitializer() && !entries->getInitializer()->isNullValue())
                refuse(nullptr, nullptr,
                       "have constructors or destructors, which run outside of its task");
    for (const char *list : {"llvm.dependent-libraries", "llvm.linker.options"})
        if (module.getNamedMetadata(list))
            refuse(nullptr, nullptr, "name a library for the linker in a pragma");
}

void Detour::judgeData()
{
    uint64_t          left = staticBytes;
    const DataLayout &layout = module.getDataLayout();
    for (const GlobalVariable &variable : module.globals()) {
        if (variable.isDeclaration() || variable.isConstant()) continue;
        uint64_t bytes = layout.getTypeAllocSize(variable.getValueType());
        if (bytes > left) {
            refuse(nullptr, nullptr,
                   "have more than 16 MiB of variables, which no budget pays for: use janus_alloc "
                   "instead of " +
                       variable.getName());
            return;
        }
        left -= bytes;
    }
}

void Detour::judgeMarkless()
{
    for (const Function *function : ownFunctions(module))
        refuse(nullptr, function, "be JANUS_OWN_OPS: " + function->getName());
    for (const Function *function : freeFunctions(module))
        refuse(nullptr, function, "be JANUS_NO_OPS: " + function->getName());
    for (const GlobalVariable &variable : module.globals())
        if (plainName(variable) == "janus_fuel" && !variable.use_empty())
            refuse(firstUse(variable), nullptr, "use the word of the checks, janus_fuel");
}

void Detour::judgeBuiltIn(const IntrinsicInst &call)
{
    StringRef name = call.getCalledFunction()->getName();
    for (const char *refused :
         {"llvm.eh.sjlj.",        "llvm.eh.return.",       "llvm.eh.unwind.init",
          "llvm.thread.pointer",  "llvm.write_register",   "llvm.write_volatile_register",
          "llvm.init.trampoline", "llvm.clear_cache",      "llvm.x86.rdfsbase",
          "llvm.x86.rdgsbase",    "llvm.x86.wrfsbase",     "llvm.x86.wrgsbase",
          "llvm.x86.fxrstor",     "llvm.x86.xrstor",       "llvm.x86.incssp",
          "llvm.x86.rstorssp",    "llvm.x86.ldtilecfg",    "llvm.x86.int",
          "llvm.x86.xbegin",      "llvm.x86.umwait",       "llvm.x86.tpause",
          "llvm.x86.umonitor",    "llvm.x86.sse3.monitor", "llvm.x86.sse3.mwait",
          "llvm.x86.monitorx",    "llvm.x86.mwaitx",       "llvm.x86.flags.write",
          "llvm.x86.slwpcb",      "llvm.x86.wrpkru",       "llvm.x86.senduipi",
          "llvm.aarch64.hint",    "llvm.aarch64.break"})
        if (startsWith(name, refused)) refuse(&call, nullptr, "use the built-in " + name);
    auto *memory = dyn_cast<MemIntrinsic>(&call);
    if (!memory || !memory->isVolatile()) return;
    auto *length = dyn_cast<ConstantInt>(memory->getLength());
    if (!length || length->getZExtValue() > volatileBytes)
        refuse(&call, nullptr, "copy more than 64 KiB of volatile data: nothing can stop it");
}

void Detour::judgeInstruction(const Instruction &instruction)
{
    auto *type = dyn_cast<IntegerType>(instruction.getType());
    if (type && type->getBitWidth() > divisionBits && instruction.isIntDivRem())
        refuse(&instruction, nullptr,
               "divide integers of more than 1024 bits: nothing can stop one division");
    bool mmx = isMmx(*instruction.getType()), segment = false;
    for (const Use &operand : instruction.operands()) {
        mmx |= isMmx(*operand->getType());
        segment |=
            operand->getType()->isPointerTy() && operand->getType()->getPointerAddressSpace() != 0;
    }
    if (mmx) // the next task would find the registers of the x87 taken
        refuse(&instruction, nullptr, "use MMX, whose registers tasks share");
    if (segment)
        refuse(&instruction, nullptr,
               "use address spaces: thread-local data belongs to whichever thread runs the task");
    if (auto *call = dyn_cast<IntrinsicInst>(&instruction)) judgeBuiltIn(*call);
}

void Detour::judgeCode()
{
    for (const Function &function : module) {
        if (!function.isDeclaration() && function.getCallingConv() == CallingConv::X86_INTR)
            refuse(nullptr, &function, "handle interrupts: " + function.getName());
        for (const Instruction &instruction : instructions(function)) judgeInstruction(instruction);
    }
}

// True if a library that every program has defines the name. The compiler runs with the same.
static bool isExported(StringRef name)
{
    static void *const libraries[] = {dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD),
                                      dlopen("libm.so.6", RTLD_LAZY | RTLD_NOLOAD)};
    for (void *library : libraries)
        if (library && dlsym(library, name.str().c_str())) return true;
    return false;
}

bool Detour::isOfLibrary(const GlobalValue &value, StringRef name)
{
    if (name == "__clang_call_terminate") return false; // clang makes it
    if (startsWith(name, "__") || name.contains('@')) return true;
    auto *function = dyn_cast<Function>(&value);
    if (function && !function->isDeclaration()) {
        // The code generator calls these by name, and would find a static function, too.
        auto &functions =
            analyses.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
        auto &library =
            functions.getResult<TargetLibraryAnalysis>(*const_cast<Function *>(function));
        LibFunc known;
        if (library.getLibFunc(name, known)) return true;
    }
    if (value.hasLocalLinkage()) return false;
    for (const char *own : {"_init", "_fini", "_start", "_Znw", "_Zna", "_Zdl", "_Zda"})
        if (own[1] == 'Z' ? startsWith(name, own) : name == own) return true;
    return isExported(name);
}

void Detour::judgeDefinitions()
{
    for (const GlobalValue &value : module.global_values()) {
        StringRef name = plainName(value);
        bool      variable = isa<GlobalVariable>(value) && value.hasLocalLinkage();
        if (value.isDeclaration() || variable || startsWith(name, "llvm.")) continue;
        if (isOfLibrary(value, name))
            refuse(nullptr, definedFunction(value),
                   "define " + name + ", a name of the C library or the compiler: give it another");
    }
}

void judgeWaysAround(Module &module, ModuleAnalysisManager &analyses)
{
    Detour detour(module, analyses);
    detour.judgePlaces();
    detour.judgeData();
    detour.judgeMarkless();
    detour.judgeCode();
    detour.judgeDefinitions();
}

} // namespace janus
