%% What a packet costs a proxy that is one Erlang process. Three forms:
%%
%%   each      as ns_server's dcp_proxy.erl under the Apache licence: a gen_server that takes what has arrived
%%             ({active, once}), appends it to what was left, splits off one packet after another, lets a callback look
%%             at each, and sends it by itself; sockets have buffers of 64 KiB, nodelay, and delay_send
%%   gathered  as it is under the Business Source Licence: packets are appended to each other, and sent once for each
%%             time that something arrived
%%   passive   asks for a packet's header, then for its body, decodes both, and sends the packet by itself
%%
%% Three programs, on one machine, with the flags of ns_server's cluster_run:
%%
%%   erlc relay.erl
%%   erl -noshell -run relay main sink 47701 -s init stop
%%   erl +A 16 +sbtu +sbwt none -noshell -run relay main each 47702 47701 -s init stop
%%   erl -noshell -run relay main source 47702 300000 -s init stop
%%
%% The relay prints the core time and the elapsed time for each packet of 1095 bytes: a mutation with a value of 1 KiB.
-module(relay).
-behaviour(gen_server).
-export([main/1, init/1, handle_call/3, handle_cast/2, handle_info/2, handle_packet/5]).

-record(state, {source, destination, form, callback, inner = [], length, rest = <<>>, alive = false, count = 0}).

main(["sink", Port]) ->
    {ok, Listener} = gen_tcp:listen(list_to_integer(Port), [binary, {active, false}, {reuseaddr, true}]),
    {ok, Socket} = gen_tcp:accept(Listener),
    sink(Socket);
main(["source", Port, Packets]) ->
    {ok, Socket} = gen_tcp:connect("127.0.0.1", list_to_integer(Port), [binary, {active, false}]),
    Body = <<0:(31 * 8), 0:(16 * 8), 0:(1024 * 8)>>,
    Mutation = <<16#80, 16#57, 16:16, 31, 0, 0:16, (byte_size(Body)):32, 1:32, 0:64, Body/binary>>,
    source(Socket, binary:copy(Mutation, 100), list_to_integer(Packets) div 100);
main([Form, Port, To]) ->
    {ok, Listener} = gen_tcp:listen(list_to_integer(Port), [{reuseaddr, true} | options(Form)]),
    {ok, Source} = gen_tcp:accept(Listener),
    {ok, Destination} = gen_tcp:connect("127.0.0.1", list_to_integer(To), options(Form)),
    Before = core_ms(),
    statistics(wall_clock),
    Count = relay(list_to_atom(Form), Source, Destination),
    {_, ElapsedMs} = statistics(wall_clock),
    CoreMs = core_ms() - Before,
    io:format("~s: ~p packets, ~.2f us of a core for each, ~.2f us elapsed~n",
              [Form, Count, CoreMs * 1000 / max(Count, 1), ElapsedMs * 1000 / max(Count, 1)]).

%% Of this process, its own and the kernel's for it; statistics(runtime) has the first alone. Ticks are of 10 ms.
core_ms() ->
    {ok, Stat} = file:read_file("/proc/self/stat"),
    Fields = string:lexemes(lists:last(string:split(Stat, ")", trailing)), " "),
    10 * lists:sum([binary_to_integer(lists:nth(Field, Fields)) || Field <- [12, 13]]).

options("each") -> [{delay_send, true} | options("gathered")];
options(_) -> [binary, {active, false}, {packet, raw}, {nodelay, true}, {recbuf, 65536}, {sndbuf, 65536}].

sink(Socket) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, _} -> sink(Socket);
        _ -> ok
    end.

source(Socket, _, 0) -> gen_tcp:close(Socket);
source(Socket, Packets, Left) ->
    ok = gen_tcp:send(Socket, Packets),
    source(Socket, Packets, Left - 1).

relay(passive, Source, Destination) -> passive(Source, Destination, 0);
relay(Form, Source, Destination) ->
    {ok, Proxy} = gen_server:start(?MODULE, {Form, Source, Destination, self()}, []),
    ok = gen_tcp:controlling_process(Source, Proxy),
    Proxy ! begin_now,
    receive {done, Count} -> Count end.

passive(Source, Destination, Count) ->
    case gen_tcp:recv(Source, 24) of
        {ok, <<Magic, Opcode, KeyLength:16, ExtrasLength, Datatype, Vbucket:16, Length:32,
               Opaque:32, Cas:64>> = Header} ->
            {ok, Body} = gen_tcp:recv(Source, Length),
            <<Extras:ExtrasLength/binary, Key:KeyLength/binary, Value/binary>> = Body,
            put(last, {Magic, Opcode, Datatype, Vbucket, Opaque, Cas, Extras, Key, Value}),
            ok = gen_tcp:send(Destination, [Header, Body]),
            passive(Source, Destination, Count + 1);
        _ -> Count
    end.

init({Form, Source, Destination, Owner}) ->
    put(owner, Owner),
    {ok, #state{source = Source, destination = Destination, form = Form, callback = ?MODULE}}.

handle_call(_, _, State) -> {reply, ok, State}.
handle_cast(_, State) -> {noreply, State}.

handle_info({tcp, Socket, Data}, #state{source = Socket, form = each} = State) ->
    ok = inet:setopts(Socket, [{active, once}]),
    {Next, <<>>} = arrived(Data, State),
    {noreply, Next, 10000};
handle_info({tcp, Socket, Data}, #state{source = Socket} = State) ->
    {Next, Gathered} = arrived(Data, State),
    case Gathered of
        <<>> -> ok;
        _ -> ok = gen_tcp:send(State#state.destination, Gathered)
    end,
    ok = inet:setopts(Socket, [{active, once}]),
    {noreply, Next};
handle_info({tcp_closed, _}, State) ->
    get(owner) ! {done, State#state.count},
    {stop, normal, State};
handle_info(begin_now, State) ->
    ok = inet:setopts(State#state.source, [{active, once}]),
    {noreply, State}.

arrived(Data, #state{rest = Rest, length = Length} = State) ->
    packets(<<Rest/binary, Data/binary>>, Length, State, <<>>).

packets(<<_:64, Length:32, _:96, _/binary>> = Data, undefined, State, Gathered) ->
    packets(Data, 24 + Length, State, Gathered);
packets(Data, Length, State, Gathered) when Length =/= undefined, byte_size(Data) >= Length ->
    {Packet, Rest} = split_binary(Data, Length),
    {Next, More} = packet(Packet, State, Gathered),
    packets(Rest, undefined, Next, More);
packets(Data, Length, State, Gathered) ->
    {State#state{rest = Data, length = Length}, Gathered}.

packet(<<Magic, Opcode, _/binary>> = Packet, #state{callback = Callback} = State, Gathered) ->
    Kind = case Magic of
               16#80 -> request;
               16#81 -> response
           end,
    {proxy, Inner, Next} = Callback:handle_packet(Kind, Opcode, Packet, State#state.inner, State),
    More = case Next#state.form of
               each ->
                   ok = gen_tcp:send(Next#state.destination, Packet),
                   Gathered;
               gathered -> <<Gathered/binary, Packet/binary>>
           end,
    {Next#state{inner = Inner, alive = true, count = Next#state.count + 1}, More}.

%% What a producer's side looks out for, none of which a mutation is.
handle_packet(request, 16#5b, _, _, State) -> exit({taken_over, State});
handle_packet(response, 16#52, _, _, State) -> exit({closed, State});
handle_packet(request, 16#55, _, _, State) -> exit({ended, State});
handle_packet(_, _, _, Inner, State) -> {proxy, Inner, State}.
