/* SPDX-License-Identifier: MIT */
/* Lua: recursion, tables, strings, closures and a sort. */
#include <lauxlib.h>
#include <lualib.h>
#include <stdint.h>
#include <stdlib.h>

uint64_t program(void);

static const char script[] =
    "local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end\n"
    "local sum = fib(24)\n"
    "local t, seed = {}, 1\n"
    "for i = 1, 40000 do seed = (seed * 1103515245 + 12345) % 2147483648 t[i] = seed end\n"
    "table.sort(t, function(a, b) return a < b end)\n"
    "for i = 1, #t, 1000 do sum = sum + t[i] end\n"
    "local words = {}\n"
    "for i = 1, 20000 do words[#words + 1] = string.format('%d:%s', i, ('x'):rep(i % 7)) end\n"
    "local text = table.concat(words, ' ')\n"
    "for word in text:gmatch('%d+') do sum = sum + #word end\n"
    "local object = {value = 0}\n"
    "function object:add(n) self.value = self.value + n end\n"
    "for i = 1, 300000 do object:add(i) end\n"
    "return sum + object.value\n";

uint64_t program(void)
{
    lua_State *lua = luaL_newstate();
    if (lua == NULL) abort();
    luaL_openlibs(lua);
    if (luaL_dostring(lua, script) != LUA_OK) abort();
    uint64_t result = (uint64_t)lua_tointeger(lua, -1);
    lua_close(lua);
    return result;
}
